"""Questions of a model about the values of its inputs, answered from the traced sample, and reported.

`if mask.any():` cannot be answered by a graph. torch.export gives up on such a question. With the traced sample at hand it
has an answer, and the graph is right for all inputs that give the same one. Nothing is assumed in silence: the answers
are listed with the model's line in a warning and in the artifact's manifest, and the graph computes each question again
and asserts its answer (`_assert`; `repair.assumed_output` says what engines without assertions do).
"""

from __future__ import annotations

import copy
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch._functorch import config as functorch_config
from torch._guards import detect_fake_mode
from torch._subclasses import meta_utils
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, get_proxy_mode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn import Parameter

from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..runtime.assumed import MARK
from .idioms.calling import is_models

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
    nodes: list[Any] = []
    evaluate = ShapeEnv.evaluate_sym_node

    def evaluate_node(self: ShapeEnv, node: Any, *args: Any, **kwargs: Any) -> Any:
        nodes.append(node)
        try:
            return evaluate(self, node, *args, **kwargs)
        finally:
            nodes.pop()

    asserting: list[Any] = []
    recording: list[ProxyTorchDispatchMode] = []
    record = ProxyTorchDispatchMode.__torch_dispatch__

    def record_op(self: ProxyTorchDispatchMode, *args: Any, **kwargs: Any) -> Any:
        recording.append(self)
        try:
            return record(self, *args, **kwargs)
        finally:
            recording.pop()

    def note(self: ShapeEnv, question: Any, answer: Any) -> None:
        if asserting:  # an assertion computes with the sample too, and may ask the same question again
            return
        line = _model_line()
        found.setdefault(line, f"{question} is {answer}")
        # The yes-or-no questions of kernels are about shapes that are like others (none, one, contiguous).
        if nodes and (get_proxy_mode() is not None or not nodes[-1].is_bool()):
            asserting.append(nodes[-1])
            try:
                with _recorded(recording):
                    _assert(nodes[-1], answer, line)
            finally:
                asserting.clear()

    with (
        _replaced(ShapeEnv, "evaluate_sym_node", evaluate_node),
        _replaced(ProxyTorchDispatchMode, "__torch_dispatch__", record_op),
        _replaced(ShapeEnv, "_log_real_tensor_propagation", note),
        _replaced(FakeTensorMode, "_maybe_infer_fake_kernel_from_pytree_out", _accepted),
        _replaced(meta_utils, "_safe_copy", _copied),
        _only_errors(_TORCH_LOGS),
        functorch_config.patch(fake_tensor_propagate_real_tensors=True),
    ):
        yield assumed
    assumed += [f"{line} ({answer})" for line, answer in found.items()]
    if assumed:
        logger.warning(
            "%s: the model's code decides by values of its inputs. The graph holds the way that the given inputs take and "
            "is right for inputs that take the same: %s.",
            component,
            "; ".join(assumed),
        )


@contextmanager
def _recorded(recording: list[ProxyTorchDispatchMode]) -> Iterator[None]:
    """While held, ops become nodes of the graph, also where an op asks while it is recorded itself.

    The kernel of `unbind` asks for the number of its results, where nothing is recorded. What an op's shape function says
    to that is not the caller's concern: then the question is listed, and not asserted.
    """
    fake = detect_fake_mode()
    if get_proxy_mode() is not None or not recording or fake is None:
        yield
        return
    bindings: Any = torch._C
    with fake, recording[-1], bindings._SetExcludeDispatchKeyGuard(bindings.DispatchKey.PreDispatch, False):
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as in `accepts`
            logger.debug("a question inside of an op cannot be asserted: %s", error)


def _assert(node: Any, answer: Any, line: str) -> None:
    """Let the graph compute a question and assert its answer.

    In the trace, before torch takes the answer for granted: afterwards the question would be a constant of the graph.

    Args:
        node: The `SymNode` that is asked for its value.
        answer: The sample's, a sympy value.
        line: The line of the model that asks.
    """
    if node.is_bool():
        value: Any = torch.SymBool(node)
        holds = value if bool(answer) else torch.sym_not(value)
    else:
        holds = (torch.SymInt(node) if node.is_int() else torch.SymFloat(node)) == node.pytype(answer)
    torch.ops.aten._assert_async.msg(torch.scalar_tensor(torch.sym_ite(holds, 1, 0)) != 0, f"{MARK}{line}")


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def _only_errors(names: tuple[str, ...]) -> Iterator[None]:
    """While held, these loggers say nothing below an error."""
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def forget_sample(program: ExportedProgram) -> ExportedProgram:
    """The program, whose example values compute nothing any more; the answers that they gave stay known."""
    for node in program.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, FakeTensor):
                value.fake_mode.propagate_real_tensors = False
                value.real_tensor = None
    return program


def accepts(program: ExportedProgram, inputs: Mapping[str, Any]) -> bool:
    """Whether what a program assumes holds for these inputs: its sample may have had other sizes, and other answers."""
    try:
        with torch.no_grad():
            program.module(check_guards=False)(**copy.deepcopy(dict(inputs)))
    except Exception as error:  # noqa: BLE001 - an assertion, or whatever an op says about sizes that are not the sample's
        logger.debug("the program refuses the given inputs: %s", error)
        return False
    return True


def _accepted(self: FakeTensorMode, op: Any, fake_in: Any, real_in: Any, fake_out: Any, real_out: Any) -> Any:
    """In place of torch's check of values against shapes, which refuses what some of its own ops do.

    `prims.sum` of int32 and `prims.signbit` have other dtypes by their shape functions, `aten.to` another memory.
    """
    return fake_out


def _copied(copy: Tensor, original: Tensor | None) -> None:
    """In place of torch's copy of a tensor's values, which leaves those of an `nn.Parameter` out: whatever was in the memory.

    Parameters are read where they are; their copies would take the memory of the model again.
    """
    if type(original) is Tensor:
        copy.copy_(original)
    elif isinstance(original, Parameter):
        copy.set_(original.data)  # type: ignore[call-overload]


def _model_line() -> str:
    """`file:line` of the innermost running frame of modelling code, or else of any code but torch's and ours."""
    foreign = [frame for frame in traceback.extract_stack() if is_models(frame.filename)]
    modelling = [frame for frame in foreign if "modeling" in Path(frame.filename).name]
    frame = (modelling or foreign)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}"
