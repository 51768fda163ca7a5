"""How much a config is shrunk: a ladder of plans, and the sizes that each puts for a field."""

from __future__ import annotations

from dataclasses import dataclass

#: Sizes of the first plan. All widths become equal, so that no projection between two sub-models can mismatch.
WIDTH, INNER, HEADS, KEY_VALUE_HEADS, HEAD_DIM, ROPE_DIM, RANK = 64, 128, 4, 2, 16, 8, 16
VOCABULARY, EXPERTS, POSITIONS, WINDOW, IMAGE, QUERIES = 128, 4, 128, 8, 64, 16
#: How far a time series model looks ahead where its default does not say.
AHEAD = 8


@dataclass(frozen=True)
class Plan:
    """One step of the ladder.

    Attributes:
        divisor: None puts fixed sizes (equal widths, four heads); a number divides every width and head size by it and
            keeps the number of heads, which preserves each sum and product that the model's code relies on.
        scale: By what the fixed widths and head sizes are multiplied.
        list_divisor: By what lists of widths (channels of stages) are divided; the scalars of a config that has such
            lists go with them.
        layers: Whether the layers are cut.
        positions: Whether positions, windows and images are cut.
        vocabulary: Whether vocabularies are cut.
    """

    divisor: int | None = None
    scale: int = 1
    list_divisor: int = 8
    layers: bool = True
    positions: bool = True
    vocabulary: bool = True


#: Tried in this order; the first whose model builds and runs is taken.
LADDER = (
    Plan(),
    Plan(divisor=16, list_divisor=16),
    Plan(divisor=8),
    Plan(positions=False),
    Plan(divisor=4, list_divisor=4),
    Plan(divisor=8, positions=False, vocabulary=False),
    Plan(divisor=2, list_divisor=2, positions=False),
    Plan(divisor=1, list_divisor=1, vocabulary=False),
    Plan(scale=2),
    Plan(vocabulary=False),
    Plan(divisor=8, layers=False, positions=False),
)

#: The steps whose models are mended, where none of the ladder works as it is.
MENDED = (LADDER[0], LADDER[2], Plan(scale=2))
