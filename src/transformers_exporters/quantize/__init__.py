"""Quantizers: one file each, over one contract. A config's `quantizer` is applied while the model is exported."""
