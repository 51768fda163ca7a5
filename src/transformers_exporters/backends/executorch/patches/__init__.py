"""Trace-time patches that only ExecuTorch needs; one file each."""
