"""Complex tensors become two real ones: no runtime but torch computes with complex numbers as a matter of course."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from ..artifact.weights import CheckpointRef, TensorRef, WeightRef
from ..errors import LoweringError
from .complex_rules import Pair, rule_of
from .expand import expand
from .inline import inline, substitute
from .source_line import source_line

_REAL_DTYPE = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def split_complex(program: ExportedProgram, weights: Mapping[str, WeightRef], component: str) -> dict[str, WeightRef]:
    """Rewrite a graph in place so that no tensor in it is complex.

    A complex weight is read as reals with a last axis of size 2, which are the same bytes.

    Args:
        program: The graph; its own state is replaced where it is complex.
        weights: Where its weights are.
        component: Its name, for the error.

    Returns:
        The weights, with the complex ones as reals.

    Raises:
        LoweringError: If a complex tensor crosses the graph's border, or an op has no rule for complex numbers.
    """
    module: GraphModule = program.graph_module
    if not any(_is_complex(node) or _is_composite(node) for node in module.graph.nodes):
        return dict(weights)
    while expand(module, {str(node.target) for node in module.graph.nodes if _is_composite(node)}):
        pass  # a composite may consist of composites
    found = dict(weights)
    pairs: dict[Node, Pair] = {}
    signature = {spec.arg.name: spec for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}
    for node in list(module.graph.nodes):
        if node.op == "placeholder" and _is_complex(node):
            spec = signature[node.name]
            if spec.kind is InputKind.USER_INPUT or spec.target is None:
                raise LoweringError(
                    f"{component!r} takes a complex tensor ({node.name}); pass its real and imaginary parts."
                )
            pairs[node] = _weight(program, node, spec.target, found)
        elif node.op == "call_function" and (_is_complex(node) or any(n in pairs for n in node.all_input_nodes)):
            _rewrite(node, pairs, component)
        elif node.op == "output" and any(n in pairs for n in node.all_input_nodes):
            raise LoweringError(
                f"{component!r} returns a complex tensor; let the model return `torch.view_as_real` of it."
            )
    for node in reversed(pairs):
        if node.op == "call_function":
            module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()
    return found


def _is_complex(node: Node) -> bool:
    values = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(value, Tensor) and value.is_complex() for value in values)


def _is_composite(node: Node) -> bool:
    """Whether a node is a transform that is short for others (`fft_fftn`); even of real tensors it makes complex ones."""
    name = node.target.name() if isinstance(node.target, torch._ops.OpOverload) else ""
    return name.startswith(("aten::fft_", "aten::stft", "aten::istft"))


def _weight(program: ExportedProgram, node: Node, name: str, weights: dict[str, WeightRef]) -> Pair:
    for state in (program.state_dict, program.constants):
        if name in state:
            state[name] = torch.view_as_real(state[name].detach().resolve_conj())
    reference = weights.get(name)
    if isinstance(reference, TensorRef):
        values = torch.view_as_real(reference.tensor.detach().resolve_conj())
        weights[name] = TensorRef(values, str(values.dtype).removeprefix("torch."), tuple(values.shape))
    elif isinstance(reference, CheckpointRef):
        weights[name] = replace(reference, dtype=_REAL_DTYPE[reference.dtype], shape=(*reference.shape, 2))
    node.meta["val"] = torch.view_as_real(node.meta["val"])
    parts = inline(node.next, lambda x: (x[..., 0], x[..., 1]), (node,), {})
    return Pair(*parts)


def _rewrite(node: Node, pairs: dict[Node, Pair], component: str) -> None:
    rule = rule_of(node.target)
    if rule is None:
        raise LoweringError(
            f"{component!r} computes {node.target} with complex numbers, for which there is no rule (at {source_line(node)}); "
            "change the model's code to real numbers, or add a rule to repair/complex_rules.py."
        )

    def parts(value: Any) -> Any:
        return pairs.get(value, value) if isinstance(value, Node) else value

    def computed(*args: Any, **kwargs: Any) -> Any:
        made = rule(*args, **kwargs)
        return tuple(made) if isinstance(made, Pair) else made

    result = inline(node, computed, pytree.tree_map(parts, node.args), pytree.tree_map(parts, dict(node.kwargs)))
    if isinstance(result, Node):
        substitute(node, result)
    else:
        pairs[node] = Pair(*result)
