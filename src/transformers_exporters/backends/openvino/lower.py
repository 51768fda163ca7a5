"""`Traced` → `openvino.Model`, through OpenVINO's own PyTorch frontend and without ONNX in between."""

from __future__ import annotations

import copy
import re

import openvino.frontend.pytorch  # registers the decoder's binding  # noqa: F401
import torch
from openvino import Model
from openvino.frontend import FrontEndManager
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind
from torch.fx import GraphModule, Node

from ...artifact.spec import ComponentSpec
from ...errors import LoweringError
from ...repair.convolutions import unify_convolutions
from ...repair.expand import expand
from ...repair.functional import NotFunctional, make_functional
from ...repair.identities import drop_identities
from ...repair.source_line import source_line
from ...trace.record import Traced
from ..contract import Lowered
from .config import OpenVINOConfig
from .constants import Constants
from .decoding.conversion import Conversion
from .decoding.graph import GraphDecoder
from .decoding.names import lookup_name, op_name
from .new_axes import broadcast_new_axes
from .ports import with_ports
from .reductions import separate_reductions
from .stateful import fold_state
from .translations import translations
from .wide_numbers import check_whole_numbers

# Ops that the frontend was seen to have no rule for in this process: decomposed at once the next time.
_unconverted: set[str] = set()

_NAMES = re.compile(r"[\w.]+\.\w+|<built-in function \w+>")


def lower(traced: Traced, config: OpenVINOConfig) -> Lowered:
    """Translate a traced component to an `openvino.Model`.

    Weights are not copied: the model's constants are views of the tensors, or of the mapped checkpoint files, that
    `traced.weights` refers to.

    Raises:
        LoweringError: If an op has no translation, or needs whole numbers of 64 bits; names the component and the model
            source line.
    """
    check_whole_numbers(traced.program, traced.spec.name)
    program = _functional(traced.program)
    constants = Constants(traced.weights)
    model = _convert(program, traced, constants)
    returned = _returned(program)
    distinct = list(dict.fromkeys(returned))
    model = with_ports(model, traced.spec, _placeholders(program), [distinct.index(node) for node in returned])
    separate_reductions(model)
    broadcast_new_axes(model)
    spec = traced.spec
    if config.stateful and spec.state:
        model, spec = fold_state(model, spec)
    if config.compress_to_fp16:
        from openvino._offline_transformations import compress_model_transformation

        compress_model_transformation(model)
    return Lowered(spec=spec, program=model, weights=constants.mapped)


def _functional(program: ExportedProgram) -> ExportedProgram:
    """A copy of the program without in-place ops, assertions and dead code."""
    made = copy.copy(program)
    made._graph_module = GraphModule(program.graph_module, copy.deepcopy(program.graph))
    try:
        make_functional(made.graph)
    except NotFunctional:
        # Slow (it runs the whole graph under fake tensors), but knows every in-place op and view.
        made = program.run_decompositions({})
    drop_identities(made.graph)
    unify_convolutions(made.graph)
    for node in reversed(made.graph.nodes):
        if node.op == "call_function" and not node.users:
            made.graph.erase_node(node)
    return made


def _convert(program: ExportedProgram, traced: Traced, load: Constants) -> Model:
    """Convert, decomposing whatever the frontend turns out not to know, until nothing is left."""
    expand(program.graph_module, _unconverted)
    while True:
        conversion = Conversion(load, translations())
        frontend = FrontEndManager().load_by_framework("pytorch")
        frontend.add_extension(conversion.extension())
        decoder = _decoder(program, conversion)
        try:
            model: Model = frontend.convert(frontend.load(decoder))
        except LoweringError:
            raise
        except Exception as error:  # the binding raises a class a failure
            names = _without_rule(conversion, str(error))
            if not expand(program.graph_module, names):
                raise LoweringError(_explain(traced.spec, conversion, error)) from error
            _unconverted.update(names)
            continue
        if conversion.failed:
            raise LoweringError(_explain(traced.spec, conversion, None))
        return model


def _without_rule(conversion: Conversion, report: str) -> set[str]:
    """The ops to decompose: those that the frontend has no rule for; if it has one for all, those that failed first.

    A node that takes another failed node's result fails with it, and must not be decomposed for that.
    """
    failed = dict.fromkeys(conversion.failed)
    if conversion.errors:
        return set()
    roots = [node for node in failed if not any(source in failed for source in node.all_input_nodes)]
    missing = {
        op_name(node)
        for node in failed
        if lookup_name(node) in _NAMES.findall(report.partition("No conversion rule")[2])
    }
    return missing or {op_name(node) for node in roots}


def _decoder(program: ExportedProgram, conversion: Conversion) -> GraphDecoder:
    weights = {
        node.name: spec.target
        for node, spec in _inputs(program)
        if spec.kind is not InputKind.USER_INPUT and spec.target is not None
    }
    # The frontend cannot return one tensor twice.
    outputs = list(dict.fromkeys(_returned(program)))
    return GraphDecoder(program.graph, program.graph_module, weights, conversion, outputs)


def _returned(program: ExportedProgram) -> list[Node]:
    """The user outputs that are tensors, in order."""
    return [
        node
        for node, spec in zip(program.graph.output_node().args[0], program.graph_signature.output_specs, strict=True)
        if spec.kind is OutputKind.USER_OUTPUT
        and isinstance(node, Node)
        and isinstance(node.meta.get("val"), torch.Tensor)
    ]


def _inputs(program: ExportedProgram) -> list[tuple[Node, InputSpec]]:
    """Placeholders and what they are. By position: copying a graph renames a placeholder called `input`."""
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    return list(zip(placeholders, program.graph_signature.input_specs, strict=True))


def _placeholders(program: ExportedProgram) -> list[str]:
    """The placeholders of the user inputs that are tensors, in order."""
    return [
        node.name
        for node, spec in _inputs(program)
        if spec.kind is InputKind.USER_INPUT and isinstance(node.meta.get("val"), torch.Tensor)
    ]


def _explain(spec: ComponentSpec, conversion: Conversion, error: Exception | None) -> str:
    """Name the first op without a translation, and the line of the model that called it."""
    if not conversion.failed:
        return f"OpenVINO cannot convert {spec.name!r}: {_gist(str(error))}."
    node = next((n for n in conversion.failed if n.op == "call_function"), conversion.failed[0])
    own = conversion.errors.get(node)
    said = (
        f" ({type(own).__name__}: {_gist(str(own))})" if own is not None else f" ({_gist(str(error))})" if error else ""
    )
    return f"OpenVINO cannot convert {op_name(node)} in {spec.name!r}, called at {source_line(node)}{said}."


def _gist(text: str) -> str:
    lines = [line.strip(" -") for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "failed at src" not in line and "FrontEnd API" not in line]
    return " ".join((telling or lines)[:6])[:400]
