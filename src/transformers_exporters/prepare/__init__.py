"""A model and raw inputs become components that are ready to be traced."""
