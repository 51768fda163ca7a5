"""The mechanism of workarounds: what one is, how they are found, installed, counted and restored. No content here."""

from .collect import collect
from .patching import Patching
from .record import Workaround

__all__ = ["Patching", "Workaround", "collect"]
