"""Split a generative model into the graphs that generation needs; one file per kind of decomposition."""

from .decompose import Split, decompose_for_generation, split_for_generation

__all__ = ["Split", "decompose_for_generation", "split_for_generation"]
