"""Questions of a model about the values of its inputs, answered from the traced sample, and reported.

`if mask.any():` cannot be answered by a graph. torch.export gives up on such a question. With the traced sample at hand it
has an answer, and the graph is right for all inputs that give the same one. Nothing is assumed in silence: the answers
are listed with the model's line in a warning and in the artifact's manifest. No runtime checks them.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.utils._pytree as pytree
from torch._functorch import config as functorch_config
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..prepare.record import Prepared
from ..prepare.references import is_referenced

logger = logging.getLogger(__name__)

_SIGNS = ("data-dependent", "data dependent", "DataDependent", "aten._local_scalar_dense")
_TORCH_LOGS = ("torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")


def asks_for_values(error: BaseException, prepared: Prepared) -> bool:
    """Whether a trace failed on a question about values, and there are values to answer it with."""
    said = f"{type(error).__name__}: {error}"
    return any(sign in said for sign in _SIGNS) and not is_referenced(prepared.model)


@contextmanager
def answered_from_sample(component: str) -> Iterator[list[str]]:
    """While held, a trace computes with the values of its sample beside the shapes, and goes on where values decide.

    Args:
        component: Its name, for the warning that lists what was assumed.

    Yields:
        What was assumed, a line of the model each; complete when the context is left.
    """
    found: dict[str, str] = {}
    assumed: list[str] = []
    original, checked = ShapeEnv._log_real_tensor_propagation, FakeTensorMode._maybe_infer_fake_kernel_from_pytree_out

    def note(self: ShapeEnv, question: Any, answer: Any) -> None:
        found.setdefault(_model_line(), f"{question} is {answer}")

    levels = {name: logging.getLogger(name).level for name in _TORCH_LOGS}
    ShapeEnv._log_real_tensor_propagation = note  # type: ignore[method-assign,assignment]
    try:
        for name in levels:
            logging.getLogger(name).setLevel(logging.ERROR)
        FakeTensorMode._maybe_infer_fake_kernel_from_pytree_out = _accepted  # type: ignore[method-assign,assignment]
        with functorch_config.patch(fake_tensor_propagate_real_tensors=True):
            yield assumed
    finally:
        FakeTensorMode._maybe_infer_fake_kernel_from_pytree_out = checked  # type: ignore[method-assign]
        ShapeEnv._log_real_tensor_propagation = original  # type: ignore[method-assign]
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    assumed += [f"{line} ({answer})" for line, answer in found.items()]
    if assumed:
        logger.warning(
            "%s: the model's code decides by values of its inputs. The graph holds the way that the given inputs take and "
            "is right for inputs that take the same: %s.",
            component,
            "; ".join(assumed),
        )


def forget_sample(program: ExportedProgram) -> ExportedProgram:
    """The program, whose example values compute nothing any more; the answers that they gave stay known."""
    for node in program.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, FakeTensor):
                value.fake_mode.propagate_real_tensors = False
                value.real_tensor = None
    return program


def _accepted(self: FakeTensorMode, op: Any, fake_in: Any, real_in: Any, fake_out: Any, real_out: Any) -> Any:
    """In place of torch's check of values against shapes, which refuses what some of its own ops do.

    `prims.sum` of int32 and `prims.signbit` have other dtypes by their shape functions, `aten.to` another memory.
    """
    return fake_out


def _model_line() -> str:
    """`file:line` of the innermost frame of modelling code that is running."""
    frames = [f for f in traceback.extract_stack() if "modeling" in f.filename.replace("\\", "/").rpartition("/")[2]]
    if not frames:
        return "a line that is not in modelling code"
    return f"{frames[-1].filename.replace(chr(92), '/').rpartition('/')[2]}:{frames[-1].lineno}: {frames[-1].line}"
