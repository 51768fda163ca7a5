"""Complex tensors become two real ones: no runtime but torch computes with complex numbers as a matter of course."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from ..artifact.weights import CheckpointRef, TensorRef, WeightRef
from ..errors import LoweringError
from .expand import expand
from .fourier import c2c, c2r, r2c
from .inline import inline, substitute
from .source_line import source_line

_aten = torch.ops.aten
_REAL_DTYPE = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


class Pair(NamedTuple):
    """The real and the imaginary part, of one shape."""

    real: Tensor
    imaginary: Tensor


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
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name().startswith("aten::fft_")


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
    rule = _rule(node.target)
    if rule is None:
        raise LoweringError(
            f"{component!r} computes {node.target} with complex numbers, for which there is no rule (at {source_line(node)}); "
            "change the model's code to real numbers, or add a rule to repair/complex_numbers.py."
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


def _as_pair(value: Any, like: Tensor) -> Pair:
    """An operand as a pair: a pair already, a real tensor, or a number."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, Tensor):
        return Pair(value, torch.zeros_like(value))
    number = complex(value)
    return Pair(torch.full_like(like, number.real), torch.full_like(like, number.imag))


def _both(a: Any, b: Any) -> tuple[Pair, Pair]:
    like = next(v.real if isinstance(v, Pair) else v for v in (a, b) if isinstance(v, Pair | Tensor))
    return _as_pair(a, like), _as_pair(b, like)


def _multiply(a: Any, b: Any) -> Pair:
    if isinstance(a, Pair) and isinstance(b, Tensor | float | int):
        return Pair(a.real * b, a.imaginary * b)
    if isinstance(b, Pair) and isinstance(a, Tensor | float | int):
        return Pair(a * b.real, a * b.imaginary)
    x, y = _both(a, b)
    return Pair(
        x.real * y.real - x.imaginary * y.imaginary,
        x.real * y.imaginary + x.imaginary * y.real,
    )


def _divide(a: Any, b: Any) -> Pair:
    if isinstance(b, Tensor | float | int):
        return Pair(a.real / b, a.imaginary / b)
    x, y = _both(a, b)
    size = y.real * y.real + y.imaginary * y.imaginary
    product = _multiply(x, Pair(y.real, -y.imaginary))
    return Pair(product.real / size, product.imaginary / size)


def _add(a: Any, b: Any, alpha: float = 1) -> Pair:
    x, y = _both(a, b)
    return Pair(torch.add(x.real, y.real, alpha=alpha), torch.add(x.imaginary, y.imaginary, alpha=alpha))


def _subtract(a: Any, b: Any, alpha: float = 1) -> Pair:
    return _add(a, b, -alpha)


def _exponential(x: Pair) -> Pair:
    size = torch.exp(x.real)
    return Pair(size * torch.cos(x.imaginary), size * torch.sin(x.imaginary))


def _cast(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`to` in its forms: between complex widths, from real to complex, or down to the real part."""
    dtype = next((v for v in (*args, kwargs.get("dtype")) if isinstance(v, torch.dtype)), None)
    if dtype is not None and not dtype.is_complex:
        return (x.real if isinstance(x, Pair) else x).to(dtype)
    pair = x if isinstance(x, Pair) else Pair(x, torch.zeros_like(x))
    if dtype is None:
        return Pair(pair.real.clone(), pair.imaginary.clone())
    return Pair(pair.real.to(dtype.to_real()), pair.imaginary.to(dtype.to_real()))


def _structural(op: Any) -> Callable[..., Any]:
    """The rule of an op that moves, joins or sums elements: the parts go the same way."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        def side(index: int) -> Any:
            pick = lambda v: v[index] if isinstance(v, Pair) else v  # noqa: E731
            own, named = pytree.tree_map(pick, (args, kwargs), is_leaf=lambda v: isinstance(v, Pair))
            return op(*own, **named)

        return Pair(side(0), side(1))

    return apply


def _rule(target: Any) -> Callable[..., Any] | None:
    if target in _RULES:
        return _RULES[target]
    packet = getattr(target, "_overloadpacket", None)
    return _structural(target) if packet in _STRUCTURAL else _PACKETS.get(packet)


_STRUCTURAL = {
    getattr(_aten, name)
    for name in [
        "alias",
        "cat",
        "clone",
        "contiguous",
        "detach",
        "expand",
        "flatten",
        "flip",
        "gather",
        "index",
        "index_select",
        "lift_fresh_copy",
        "mean",
        "neg",
        "permute",
        "repeat",
        "reshape",
        "resolve_conj",
        "resolve_neg",
        "roll",
        "select",
        "slice",
        "split",
        "squeeze",
        "stack",
        "sum",
        "transpose",
        "unbind",
        "unflatten",
        "unsqueeze",
        "view",
        "view_as",
        "expand_as",
        "repeat_interleave",
        "constant_pad_nd",
        "movedim",
    ]
}
_PACKETS: dict[Any, Callable[..., Any]] = {
    _aten.to: _cast,
    _aten._to_copy: _cast,
    _aten.mul: _multiply,
    _aten.div: _divide,
    _aten.add: _add,
    _aten.sub: _subtract,
}
_RULES: dict[Any, Callable[..., Any]] = {
    _aten.view_as_complex.default: lambda x: Pair(x[..., 0], x[..., 1]),
    _aten.view_as_real.default: lambda x: torch.stack(tuple(x), -1),
    _aten.complex.default: lambda real, imaginary: Pair(real.clone(), imaginary.clone()),
    _aten.polar.default: lambda size, angle: Pair(size * torch.cos(angle), size * torch.sin(angle)),
    _aten.real.default: lambda x: x.real.clone() if isinstance(x, Pair) else x.clone(),
    _aten.imag.default: lambda x: x.imaginary.clone(),
    _aten.conj.default: lambda x: Pair(x.real.clone(), -x.imaginary),
    _aten._conj.default: lambda x: Pair(x.real.clone(), -x.imaginary),
    _aten.conj_physical.default: lambda x: Pair(x.real.clone(), -x.imaginary),
    _aten.abs.default: lambda x: torch.sqrt(x.real * x.real + x.imaginary * x.imaginary),
    _aten.angle.default: lambda x: torch.atan2(x.imaginary, x.real),
    _aten.exp.default: _exponential,
    _aten._fft_r2c.default: lambda *args: Pair(*r2c(*args)),
    _aten._fft_c2c.default: lambda x, *args: Pair(*c2c(*_as_pair(x, x), *args)),
    _aten._fft_c2r.default: lambda x, *args: c2r(*_as_pair(x, x), *args),
}
