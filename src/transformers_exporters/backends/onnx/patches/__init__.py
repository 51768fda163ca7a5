"""Patches of torch for the ONNX converter."""
