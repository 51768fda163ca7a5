"""Patches for audio, phonemes and time series."""
