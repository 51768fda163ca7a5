"""Patches for what modelling code does with Python itself: its builtins, rounding, loops and caches."""
