"""Decode with ONNX Runtime alone: the cache is one set of buffers, bound as input and as output of every step."""

from collections.abc import Callable

import numpy as np
import onnxruntime as ort
from artifact import Decode, Tensor, main


def make(graph: Decode) -> tuple[Callable[[list[int], int], np.ndarray], Callable[[], int]]:
    """A step over a cache that stays where it is."""
    session = ort.InferenceSession(str(graph.file))
    binding = session.io_binding()
    value = ort.OrtValue.ortvalue_from_numpy
    state = {tensor.name: value(graph.zeros(tensor)) for tensor, _ in graph.state}
    # Small counters that the graph reads after writing get a second buffer, and the two change places after each step.
    second = {t.name: value(graph.zeros(t)) for t, _ in graph.state if t.name not in graph.options["in_place"]}
    addresses = sorted(v.data_ptr() for v in [*state.values(), *second.values()])
    moved = 0

    def bind(tensor: Tensor, updated: Tensor) -> None:
        binding.bind_ortvalue_input(tensor.port, state[tensor.name])
        binding.bind_ortvalue_output(updated.port, second.get(tensor.name, state[tensor.name]))

    for tensor, updated in graph.state:
        bind(tensor, updated)

    def step(ids: list[int], past: int) -> np.ndarray:
        nonlocal moved
        if past == 0:
            for tensor, _ in graph.state:
                state[tensor.name].update_inplace(graph.zeros(tensor))
        feeds = graph.feeds(ids, past)
        for port, array in feeds.items():
            binding.bind_cpu_input(port, array)
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        for tensor, updated in graph.state:
            if tensor.name in second:
                state[tensor.name], second[tensor.name] = second[tensor.name], state[tensor.name]
                bind(tensor, updated)
        assert sorted(v.data_ptr() for v in [*state.values(), *second.values()]) == addresses
        logits = next(v for v in binding.get_outputs() if v.data_ptr() not in addresses).numpy()
        moved = sum(array.nbytes for array in feeds.values()) + logits.nbytes
        return logits

    return step, lambda: moved


if __name__ == "__main__":
    main(make)
