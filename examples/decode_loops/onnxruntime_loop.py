"""Decode with ONNX Runtime alone: the cache is one set of buffers, bound as input and as output of every step."""

from collections.abc import Callable

import numpy as np
import onnxruntime as ort
from artifact import Decode, Tensor, main


def make(graph: Decode) -> tuple[Callable[[list[int], int], np.ndarray], Callable[[], int]]:
    """A step over a cache that stays where it is."""
    session = ort.InferenceSession(str(graph.file))
    logits = next(t.port for t in graph.outputs if t.name == "logits")

    def buffer(tensor: Tensor) -> ort.OrtValue:
        return ort.OrtValue.ortvalue_from_numpy(graph.zeros(tensor))

    # What a step reads and what it writes are one buffer. Small counters that the graph reads after writing have two, and
    # the steps take turns between two bindings: one reads the first and writes the second, the other one the reverse.
    first = {t.name: buffer(t) for t, _ in graph.state}
    second = {t.name: first[t.name] if t.name in graph.options["in_place"] else buffer(t) for t, _ in graph.state}
    turns = [(session.io_binding(), first, second), (session.io_binding(), second, first)]
    for binding, read, written in turns:
        binding.bind_output(logits)
        for tensor, updated in graph.state:
            binding.bind_ortvalue_input(tensor.port, read[tensor.name])
            binding.bind_ortvalue_output(updated.port, written[tensor.name])
    moved = 0

    def step(ids: list[int], past: int) -> np.ndarray:
        nonlocal moved
        binding, read, written = turns[0]
        if past == 0:
            for tensor, _ in graph.state:
                read[tensor.name].update_inplace(graph.zeros(tensor))
        feeds = graph.feeds(ids, past)
        for port, array in feeds.items():
            binding.bind_cpu_input(port, array)
        binding.bind_output(logits)
        session.run_with_iobinding(binding)
        turns.reverse()
        made, *state = binding.get_outputs()
        if past == 0:
            assert [v.data_ptr() for v in state] == [written[t.name].data_ptr() for t, _ in graph.state]
        scores = made.numpy()
        moved = sum(array.nbytes for array in feeds.values()) + scores.nbytes
        return scores

    return step, lambda: moved


if __name__ == "__main__":
    main(make)
