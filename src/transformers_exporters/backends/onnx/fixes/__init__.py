"""Repairs of the traced graph that only the ONNX converter needs; one file each."""
