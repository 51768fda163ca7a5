"""Repairs of the traced graph that several backends need; one file each."""
