"""Traced graphs are rewritten to one shared normal form."""
