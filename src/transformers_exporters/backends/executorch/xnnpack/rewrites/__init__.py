"""Say the traced graph in the operators that XNNPACK computes. One pattern a file, each `apply(program) -> int`."""
