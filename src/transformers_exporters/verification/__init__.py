"""Proof that an artifact computes what its model computes: the cases, the comparison, and the report."""

from .comparison import TOLERANCES
from .report import Report, Row
from .run import verify

__all__ = ["TOLERANCES", "Report", "Row", "verify"]
