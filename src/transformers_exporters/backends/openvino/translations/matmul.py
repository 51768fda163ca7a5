"""`matmul` and `einsum` as single nodes: torch's decompositions expand, flatten and compare symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from openvino import Output
from openvino import opset15 as ops

from ..call import Call


def _matmul(call: Call) -> Output:
    """numpy's rules, which are torch's and OpenVINO's: a vector is a row on the left and a column on the right."""
    names = list(call.names)
    return ops.matmul(call[names[0]], call[names[1]], False, False).output(0)


def _einsum(call: Call) -> Output:
    """The equation without spaces and dots: OpenVINO 2026.3 computes `...i,...j->...ij` wrongly."""
    ranks = [tensor.get_partial_shape().rank.get_length() for tensor in call["tensors"]]
    return ops.einsum(call["tensors"], _lettered(call["equation"].replace(" ", ""), ranks)).output(0)


def _lettered(equation: str, ranks: Sequence[int]) -> str:
    """A letter for every axis that `...` stands for; what dots have in common is counted from the right."""
    if "..." not in equation:
        return equation
    sources, arrow, result = equation.partition("->")
    terms = sources.split(",")
    covered = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True) if "..." in term]
    free = "".join(letter for letter in ascii_letters if letter not in equation)[: max(covered)]
    lengths = iter(covered)
    terms = [term.replace("...", free[len(free) - next(lengths) :]) if "..." in term else term for term in terms]
    if not arrow:  # torch's rule: the dots first, then what occurs once, in order
        letters = sources.replace(",", "").replace("...", "")
        result = "..." + "".join(letter for letter in sorted(set(letters)) if letters.count(letter) == 1)
    return f"{','.join(terms)}->{result.replace('...', free)}"


TRANSLATIONS = {"aten.matmul.default": _matmul, "aten.einsum.default": _einsum}
