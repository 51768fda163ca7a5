"""What a verification measured: a row for each output in each case."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ..errors import VerificationError

#: A quantized artifact does not compute what the model computes. Below this cosine similarity to the model's output
#: it computes something else.
AGREEMENT = 0.8


@dataclass(frozen=True)
class Row:
    """One output of one component in one case.

    Attributes:
        component: The component's name.
        output: The output's leaf path.
        case: The sizes of the inputs, e.g. `batch=5, sequence=22`.
        abs: Largest absolute error; inf for a wrong shape, or where only the model's value is finite.
        rel: `abs` divided by the largest absolute value of the model's output.
        tolerance: What `rel` may be; inf for a quantized artifact, which is held to `cosine`.
        ok: Whether it is.
        cosine: Of a quantized artifact's floating-point output, the cosine similarity to the model's.
        top1: Of a quantized artifact's `logits`, how often the largest one is the model's, from 0 to 1.
        note: Where the model selects among values that are equal up to rounding, which ones. An `ok` row equals what the
            model computes with others of them; one that is not `ok` could not be compared.
    """

    component: str
    output: str
    case: str
    abs: float
    rel: float
    tolerance: float
    ok: bool
    cosine: float | None = None
    top1: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Report:
    """What a verification measured.

    Attributes:
        rows: One for each component, case and output.
        refused: Cases that the model itself does not take, as `component: sizes`.
        fixed: Sizes that the model takes and the artifact does not, because it keeps the axis at the exported size, as
            `component: sizes`. They do not count against `ok`: an export without dynamic axes has nothing else.
    """

    rows: tuple[Row, ...]
    refused: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether something was compared and every output was within its tolerance."""
        return bool(self.rows) and all(row.ok for row in self.rows)

    @property
    def undecided(self) -> bool:
        """Whether nothing is known to be wrong, and something could not be compared."""
        return not self.ok and bool(self.rows) and all(row.ok or row.note for row in self.rows)

    def worst(self) -> list[Row]:
        """The worst row of each output of each component."""
        found: dict[tuple[str, str], Row] = {}
        for row in self.rows:
            held = found.setdefault((row.component, row.output), row)
            if _badness(row) > _badness(held):
                found[row.component, row.output] = row
        return list(found.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: `ok`, `rows`, `refused` and `fixed`."""
        rows = [dataclasses.asdict(row) for row in self.rows]
        return {"ok": self.ok, "rows": rows, "refused": list(self.refused), "fixed": list(self.fixed)}

    def check(self) -> None:
        """Raise `VerificationError` naming the worst output, if one is not within its tolerance."""
        if not self.rows:
            raise VerificationError("Nothing was compared: the model takes none of the tried inputs.")
        if not self.ok:
            row = max(self.worst(), key=_badness)
            if row.cosine is not None:
                raise VerificationError(
                    f"{row.component}: the quantized {row.output} has a cosine similarity of {row.cosine:.3f} to the "
                    f"model's at {row.case}, {AGREEMENT} is accepted; quantize with more bits or smaller blocks."
                )
            if row.note is not None:
                raise VerificationError(
                    f"{row.component}: {row.output} cannot be compared at {row.case}: {row.note}; verify with other inputs."
                )
            raise VerificationError(
                f"{row.component}: {row.output} differs from the model's by {row.rel:.1e} of its largest value at "
                f"{row.case}, {row.tolerance:.0e} is accepted."
            )


def _badness(row: Row) -> tuple[bool, bool, float, float]:
    return (not row.ok, row.note is None, -1.0 if row.cosine is None else -row.cosine, row.rel)
