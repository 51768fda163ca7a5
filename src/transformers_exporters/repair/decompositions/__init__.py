"""Ops outside the shared normal form, written in it. One topic a file; each lists its ops in `RULES`.

A rule takes the op's own arguments and computes what the op computes, for any size.
"""
