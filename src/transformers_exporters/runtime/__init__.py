"""Open an artifact and run it with numpy alone: no torch, no transformers."""
