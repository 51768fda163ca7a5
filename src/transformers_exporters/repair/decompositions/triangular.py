"""Systems of linear equations whose matrix is triangular."""

from __future__ import annotations

import torch
from torch import Tensor

from ...trace.recurrences.scan import unit_lower_inverse


def solve_triangular(
    matrix: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """`matrix^-1 @ right`, or `right @ matrix^-1`, by the inverse of the matrix: its size has to be static.

    Raises:
        NotImplementedError: For a size that varies.
    """
    size = matrix.shape[-1]
    if not isinstance(size, int):
        raise NotImplementedError("a triangular system of open size")
    if not left:
        turned = solve_triangular(
            matrix.transpose(-1, -2), right.transpose(-1, -2), upper=not upper, unitriangular=unitriangular
        )
        return turned.transpose(-1, -2)
    if upper:  # in the other order of rows and columns, it is lower
        flipped = solve_triangular(matrix.flip([-1, -2]), right.flip([-2]), upper=False, unitriangular=unitriangular)
        return flipped.flip([-2])
    if not unitriangular:
        scale = torch.diagonal(matrix, dim1=-2, dim2=-1).unsqueeze(-1)
        matrix, right = matrix / scale, right / scale
    return torch.matmul(unit_lower_inverse(matrix.tril(-1)), right)


RULES = {"aten.linalg_solve_triangular.default": solve_triangular}
