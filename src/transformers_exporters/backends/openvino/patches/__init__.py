"""Trace patches for what OpenVINO has as one operation."""
