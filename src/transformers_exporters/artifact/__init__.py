"""What is on disk: tensor specs, named axes, the manifest, the atomic store, weight references. Stdlib only."""
