"""What is known of sizes is simplified again only where a new divisibility says something of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv, Mod

from ....workarounds import Workaround

#: The attribute of a `ShapeEnv` that holds what its axioms were simplified with.
_STATE = "axioms_simplified_with"


def only_affected(original: Callable[..., Any]) -> Callable[..., Any]:
    """`ShapeEnv._maybe_evaluate_static`, which finds its axioms simplified."""

    @functools.wraps(original)
    def evaluate(self: ShapeEnv, *args: Any, **kwargs: Any) -> Any:
        if self._resimplify_floor_div_axioms and kwargs.get("axioms") is None:
            self._resimplify_floor_div_axioms = False
            _simplify(self)
        return original(self, *args, **kwargs)

    return evaluate


def _simplify(env: ShapeEnv) -> None:
    """Add the simpler forms of the axioms that are new, or divide by what was found to divide since the last time."""
    state = vars(env).setdefault(_STATE, {"replacements": 0, "divisible": set(), "remainders": {}})
    if state["replacements"] != len(env.replacements):
        state["replacements"] = len(env.replacements)
        state["remainders"].clear()
    found = env.divisible - state["divisible"]
    state["divisible"] = set(env.divisible)
    for axiom, value in list(env.axioms.items()):
        remainders = state["remainders"].get(axiom)
        if remainders is None:
            quotients = axiom.atoms(FloorDiv)
            remainders = state["remainders"][axiom] = {env.replace(Mod(*quotient.args)) for quotient in quotients}
            if not quotients:
                continue
        elif remainders.isdisjoint(found):
            continue
        env.axioms[env.simplify(axiom)] = value


WORKAROUND = Workaround(
    reason="With every size that is found to be a multiple, all that is known of sizes is simplified again, hundreds of "
    "comparisons (torch 2.13): 40 % of the time of a trace that cuts images into patches again and again.",
    upstream="none: no issue is known to us; `resimplify_floor_div` in torch/fx/experimental/symbolic_shapes.py",
    targets=("torch.fx.experimental.symbolic_shapes:ShapeEnv._maybe_evaluate_static",),
    apply=only_affected,
)
