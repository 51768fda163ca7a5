"""Idioms of modelling code whose meaning stays open in a trace: lists of one tensor per image, `int`, quotients, decorators."""
