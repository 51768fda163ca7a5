"""Patches for images: tiles, crops, packed patches and their positions, windows, keypoints."""
