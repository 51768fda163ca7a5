"""Trace-time patches that every backend needs: one file each, found by `workarounds.collect`."""
