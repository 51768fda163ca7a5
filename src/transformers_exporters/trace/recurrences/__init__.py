"""Recurrences over the sequence in closed form: what the patches for them share."""
