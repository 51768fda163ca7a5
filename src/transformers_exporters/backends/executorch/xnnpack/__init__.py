"""How a graph is handed to XNNPACK: which nodes, in which parts, serialized how."""
