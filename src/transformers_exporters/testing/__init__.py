"""Shipped for tests, the demo and the benchmarks: checkpoints and models that need no hub."""
