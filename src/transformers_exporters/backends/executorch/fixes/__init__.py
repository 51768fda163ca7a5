"""Repairs of the traced graph that only ExecuTorch needs; one file each."""
