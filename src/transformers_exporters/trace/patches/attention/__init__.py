"""Patches for attention that is computed block by block, and for masks and positions."""
