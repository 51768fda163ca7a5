"""Decode with torch.export alone: the program writes into the cache's own tensors.

The saved program carries the objects that it was traced with, among them an empty cache: the template. Loading it needs the
cache's class to be known to torch's pytrees. A `.pt2` may hold pickled objects: load only what you trust.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.utils._pytree as pytree
import transformers.modeling_outputs  # tells torch about the class of the result
from artifact import Decode, main
from transformers import StaticCache

from transformers_exporters import register_pytree_node


def make(graph: Decode) -> tuple[Callable[[list[int], int], np.ndarray], Callable[[], int]]:
    """A step that mutates the template's tensors."""
    register_pytree_node(StaticCache)
    assert transformers.modeling_outputs
    program = torch.export.load(str(graph.file))
    _, template = program.example_inputs
    cache_name = graph.state[0][0].name.partition(".")[0]
    # The template's structure, with tensors for one sequence; the sample's batch may have been another.
    tensors = [torch.from_numpy(graph.zeros(tensor)) for tensor, _ in graph.state]
    cache = pytree.tree_unflatten(tensors, pytree.tree_structure(template[cache_name]))
    # Not the module itself: before each call its hook solves the shapes' equations, half of a small model's step.
    run = program.module(check_guards=False).forward
    flags = {
        name: value for name, value in template.items() if not isinstance(value, torch.Tensor) and name != cache_name
    }
    moved = 0

    def step(ids: list[int], past: int) -> np.ndarray:
        nonlocal moved
        if past == 0:
            for tensor in tensors:
                tensor.zero_()
        feeds = {name: torch.from_numpy(array) for name, array in graph.feeds(ids, past).items()}
        with torch.no_grad():
            logits = run(**feeds, **{cache_name: cache}, **flags).logits
        assert all(a is b for a, b in zip(pytree.tree_leaves(cache), tensors, strict=True))
        moved = 0  # the program reads the fed tensors where they are, and returns its own
        return logits.numpy()

    return step, lambda: moved


if __name__ == "__main__":
    main(make)
