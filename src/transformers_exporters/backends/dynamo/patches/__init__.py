"""Trace patches for graphs that torch itself runs."""
