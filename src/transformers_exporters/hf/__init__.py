"""The torch- and transformers-facing side of running an artifact."""
