"""Decode with ExecuTorch's Python runtime.

A program that was exported with `alloc_graph_input=False` writes into the state that it is fed. Another one returns the updated
state before the logits: it is read back every step. C++ binds the outputs too and copies nothing: see ../executorch_cpp.
"""

from collections.abc import Callable

import numpy as np
import torch
from artifact import Decode, main
from executorch.runtime import Runtime


def make(graph: Decode) -> tuple[Callable[[list[int], int], np.ndarray], Callable[[], int]]:
    """A step after which the tensors that it was fed hold the new state."""
    method = Runtime.get().load_program(graph.file).load_method("forward")
    state = {tensor.name: torch.from_numpy(graph.zeros(tensor)) for tensor, _ in graph.state}
    results = graph.options["results"]  # the runtime's order: updated state first, then what the model returned
    moved = 0

    def step(ids: list[int], past: int) -> np.ndarray:
        nonlocal moved
        if past == 0:
            for tensor in state.values():
                tensor.zero_()
        feeds = {port: torch.from_numpy(array) for port, array in graph.feeds(ids, past).items()}
        outputs = list(method.execute([state.get(t.name, feeds.get(t.port)) for t in graph.inputs]))
        moved = sum(t.nbytes for t in feeds.values())
        if not results["in_place"]:
            for name in results["written"]:
                updated = outputs.pop(0)
                state[name].copy_(updated)
                moved += updated.nbytes
        names = [graph.outputs[place].name for place in results["returned"]]
        logits = outputs[names.index("logits")]
        return logits.numpy()

    return step, lambda: moved


if __name__ == "__main__":
    main(make)
