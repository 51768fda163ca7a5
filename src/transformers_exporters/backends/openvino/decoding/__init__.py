"""Shows a traced program to OpenVINO's PyTorch frontend, node by node, with its weights as references.

OpenVINO ships a decoder of its own (`openvino.frontend.pytorch.fx_decoder`). This one exists because that one looks every
node up in a list (quadratic in the graph's size), knows no element types (so that a Python number and a tensor promote
alike), unlifts the program first (which needs the values of all weights) and re-decomposes it.
"""
