"""A tiny model of any architecture: its default config, shrunk step by step until the model builds and runs."""

from .model import tiny_model

__all__ = ["tiny_model"]
