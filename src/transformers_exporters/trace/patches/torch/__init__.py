"""Patches for functions of torch that a trace gets wrong or cannot hold."""
