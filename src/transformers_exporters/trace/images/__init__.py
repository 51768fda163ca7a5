"""Images cut into tiles or packed along one axis: the computations that the patches for images share."""
