"""What a graph assumes about the values of its inputs, checked after a call.

Where a model decides by values (`if mask.any():`), its graph holds one way and computes beside its outputs whether the
inputs take that way. A torch program asserts it; the graphs of other engines return it, as one more output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..artifact.spec import ComponentSpec
from ..errors import InputError

#: The output that says whether the inputs take the way that the graph holds: bool, no axes. No leaf path has its form.
OUTPUT = "assumptions_hold"

#: How the message of a torch program's assertion begins; the line of the model follows.
MARK = "assumed: "


def check_assumed(spec: ComponentSpec, outputs: Mapping[str, Any]) -> None:
    """Refuse outputs of inputs that take another way through the model's code than the graph.

    Args:
        spec: The component's border; `spec.options["assumed"]` lists what it assumes.
        outputs: Outputs by name.

    Raises:
        InputError: If the assumptions do not hold.
    """
    if OUTPUT in outputs and not bool(outputs[OUTPUT]):
        raise broken(spec)


def broken(spec: ComponentSpec) -> InputError:
    """The error for inputs that take another way than the graph."""
    lines = "; ".join(spec.options.get("assumed", ()))
    return InputError(
        f"These inputs take another way through the model's code than those that {spec.name!r} was exported with. It "
        f"assumes: {lines}. Export with inputs like these."
    )
