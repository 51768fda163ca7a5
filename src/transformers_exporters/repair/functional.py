"""Rewrites in-place ops of a traced graph to functional ones, without tracing it again.

`ExportedProgram.run_decompositions` does the same by running the whole graph under fake tensors: 30 s for a 30-layer Llama
whose trace takes 9 s (one thread, torch 2.13). Here an in-place op on a tensor becomes its functional twin, every later
use reads the new value, and where the tensor is a view the new value is written back through the chain of views.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

_aten = torch.ops.aten

#: In-place by name, without a visible effect.
_HARMLESS = frozenset({_aten.detach_.default, _aten.requires_grad_.default})

#: Views that can be undone by a view: op -> how to rebuild the base's value from the view's.
_RESHAPES = frozenset(
    {
        _aten.view.default,
        _aten.reshape.default,
        _aten._unsafe_view.default,
        _aten.squeeze.default,
        _aten.squeeze.dim,
        _aten.squeeze.dims,
        _aten.unsqueeze.default,
        _aten.flatten.using_ints,
        _aten.unflatten.int,
        _aten.view_as.default,
    }
)
#: The tensor itself, where it has the dtype already.
_CASTS = frozenset({_aten.to.dtype, _aten.to.dtype_layout, _aten.to.device, _aten.to.other})
_SAME = frozenset({_aten.alias.default, _aten.detach.default, _aten.contiguous.default, *_HARMLESS, *_CASTS})


class NotFunctional(Exception):
    """An in-place op through a view that this pass cannot write back; the caller re-traces instead."""


@dataclass
class _State:
    """What is known while walking the graph once.

    Attributes:
        source: View -> the tensor that it was taken from.
        views: Tensor -> its views, in order.
        current: Original node -> the node that holds its value now.
    """

    source: dict[Node, Node] = field(default_factory=dict)
    views: dict[Node, list[Node]] = field(default_factory=dict)
    current: dict[Node, Node] = field(default_factory=dict)


def is_mutable(node: Node) -> bool:
    """Whether a node writes into one of its arguments."""
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.is_mutable and node.target not in _HARMLESS


def make_functional(graph: Graph) -> int:
    """Replace the in-place ops of `graph`, which is changed; returns how many there were.

    A mutated input's new value replaces it in every later use, so an output that returns the input returns the new value.

    Raises:
        NotFunctional: At an op or view without a known inverse. The graph is then unusable.
    """
    if not any(map(is_mutable, graph.nodes)):
        return 0
    state = _State()
    replaced: list[Node] = []
    for node in list(graph.nodes):
        if node.op == "output":
            node.args = torch.fx.node.map_arg(node.args, lambda n: state.current.get(n, n))
            continue
        if node.op != "call_function":
            continue
        originals = node.args
        node.args = torch.fx.node.map_arg(node.args, lambda n: state.current.get(n, n))
        node.kwargs = torch.fx.node.map_arg(node.kwargs, lambda n: state.current.get(n, n))
        if isinstance(node.meta.get("val"), list | tuple) and isinstance(originals[0], Node) and _aliases(node):
            node.meta["split_of"] = originals[0]
        if is_mutable(node):
            _replace(graph, node, originals, state)
            replaced.append(node)
        elif (source := _viewed(node, originals)) is not None:
            state.source[node] = source
            state.views.setdefault(source, []).append(node)
    for node in reversed(replaced):
        graph.erase_node(node)
    graph.lint()
    return len(replaced)


def marks_vmap(graph: Graph) -> bool:
    """Whether the marks that torch leaves around a `torch.vmap` are in a graph; `run_decompositions` resolves them."""
    return any(str(getattr(node.target, "__module__", "")).startswith("torch._functorch") for node in graph.nodes)


def writes_into_inputs(graph: Graph) -> bool:
    """Whether an in-place op changes an input or a buffer, itself or through a view: a caller may look at it afterwards."""
    sources: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or not (node.args and isinstance(node.args[0], Node)):
            continue
        if is_mutable(node) or _aliases(node) or node.target is operator.getitem:
            sources[node] = node.args[0]
        if is_mutable(node):
            written = node.args[0]
            while written in sources:
                written = sources[written]
            if written.op != "call_function":
                return True
    return False


def _viewed(node: Node, originals: tuple[Any, ...]) -> Node | None:
    """The tensor that a node is a view of, if it is one. A piece of a split is a view of the whole."""
    source = originals[0] if originals else None
    if not isinstance(source, Node) or not isinstance(node.meta.get("val"), torch.Tensor):
        return None
    if node.target is operator.getitem:
        whole = source.args[0] if source.args else None
        return source.meta["split_of"] if "split_of" in source.meta and isinstance(whole, Node) else None
    return source if _aliases(node) else None


def _aliases(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    if node.target in (_aten.reshape.default, _aten.contiguous.default, _aten.flatten.using_ints):
        # Views only when the memory allows it. Treated as views: in a trace of an eager model a write through a
        # copy that nobody reads again would be dead code, so a write that matters went through a view.
        return True
    if node.target in _CASTS:
        source: Any = node.args[0]
        return _value(node).dtype == _value(source).dtype and not _asks_for_a_copy(node)
    first = schema.arguments[0].alias_info if schema.arguments else None
    return first is not None and not first.is_write


def _asks_for_a_copy(node: Node) -> bool:
    place = [argument.name for argument in node.target._schema.arguments].index("copy")  # type: ignore[union-attr]
    return bool(node.kwargs.get("copy") or (node.args[place] if len(node.args) > place else False))


def _replace(graph: Graph, node: Node, originals: tuple[Any, ...], state: _State) -> None:
    """Put the functional twin of an in-place op after it and make it the current value of the written tensor."""
    written = originals[0]
    if not isinstance(written, Node):
        raise NotFunctional(f"{node.target} writes into something that is not its first argument")
    with graph.inserting_after(node):
        new = graph.call_function(*_functional_twin(node))
    new.meta = dict(node.meta)
    new.meta["val"] = _value(written)
    cursor = _Cursor(graph, new, node)
    base, value = written, new
    while base in state.source:
        below = state.source[base]
        value = cursor.write_back(base, state.current.get(below, below), value)
        base = below
    _publish(base, value, state, cursor)
    # The in-place op returns the tensor that it wrote: later uses of its result are uses of that tensor.
    result = state.current.get(written, written)
    state.current[node] = result
    state.source[node] = written
    state.views.setdefault(written, []).append(node)
    node.meta["same_as"] = True


def _publish(base: Node, value: Node, state: _State, cursor: _Cursor) -> None:
    """Make `value` the current value of `base`, and take all of its views again from it."""
    state.current[base] = value
    for view in state.views.get(base, []):
        if view.meta.get("same_as"):
            _publish(view, value, state, cursor)
        else:
            _publish(view, cursor.again(view, value), state, cursor)


def _functional_twin(node: Node) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The out-of-place op with the arguments that compute the written tensor's new value."""
    packet = node.target._overloadpacket  # type: ignore[union-attr]
    name, overload = packet.__name__, node.target._overloadname  # type: ignore[union-attr]
    if not name.endswith("_") or name.startswith("__"):
        raise NotFunctional(f"{node.target} has no functional twin")
    target = node.args[0]
    dtype = _value(target).dtype if isinstance(target, Node) else None
    if name == "copy_":
        return _aten.copy.default, node.args, dict(node.kwargs)
    if name == "zero_":
        return _aten.zeros_like.default, (target,), {}
    if name == "fill_":
        kind = "Tensor" if overload == "Tensor" else "Scalar"
        return getattr(_aten.fill, kind), node.args, dict(node.kwargs)
    twin = getattr(getattr(_aten, name[:-1], None), overload, None)
    if twin is None:
        raise NotFunctional(f"{node.target} has no functional twin")
    others = [a for a in node.args[1:] if isinstance(a, Node) and isinstance(a.meta.get("val"), torch.Tensor)]
    if any(_value(o).dtype != dtype and _value(o).is_floating_point() for o in others) and "index" not in name:
        # In place the written tensor's dtype wins, out of place the wider one would.
        raise NotFunctional(f"{node.target} mixes dtypes")
    return twin, node.args, dict(node.kwargs)


def _value(node: Node) -> torch.Tensor:
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        raise NotFunctional(f"{node} is not a tensor")
    return value


class _Cursor:
    """Appends nodes one after the other behind an in-place op."""

    def __init__(self, graph: Graph, last: Node, origin: Node) -> None:
        self.graph, self.last, self.origin = graph, last, origin

    def call(self, target: Any, args: tuple[Any, ...], value: Any, kwargs: dict[str, Any] | None = None) -> Node:
        with self.graph.inserting_after(self.last):
            node = self.graph.call_function(target, args, kwargs or {})
        node.meta = {key: value for key, value in self.origin.meta.items() if key in ("stack_trace", "nn_module_stack")}
        node.meta["val"] = value
        self.last = node
        return node

    def again(self, view: Node, base: Node) -> Node:
        """The view `view`, taken from `base` instead."""
        if view.target is operator.getitem:
            pieces = view.args[0]
            assert isinstance(pieces, Node)
            split = self.call(pieces.target, (base, *pieces.args[1:]), pieces.meta["val"], dict(pieces.kwargs))
            return self.call(operator.getitem, (split, view.args[1]), view.meta["val"])
        return self.call(view.target, (base, *view.args[1:]), view.meta["val"], dict(view.kwargs))

    def write_back(self, view: Node, base: Node, value: Node) -> Node:
        """The value of `base` after `value` was written through its view `view`."""
        target, rest, whole = view.target, view.args[1:], _value(base)
        if view.meta.get("same_as") or target in _SAME:
            return value
        if target in _RESHAPES:
            return self.call(_aten.reshape.default, (value, self.sizes(base)), whole)
        if target is operator.getitem:
            return self._join(view, base, value)
        if target is _aten.select.int:
            return self.call(_aten.select_scatter.default, (base, value, *rest), whole)
        if target is _aten.slice.Tensor:
            return self.call(_aten.slice_scatter.default, (base, value, *rest), whole)
        if target is _aten.transpose.int:
            return self.call(_aten.transpose.int, (value, *rest), whole)
        if target in (_aten.t.default, _aten.numpy_T.default):
            return self.call(target, (value,), whole)
        if target is _aten.permute.default:
            order = [int(d) % whole.dim() for d in rest[0]]  # type: ignore[union-attr, arg-type]
            inverse = [order.index(i) for i in range(len(order))]
            return self.call(_aten.permute.default, (value, inverse), whole)
        raise NotFunctional(f"a write through {target}")

    def _join(self, view: Node, base: Node, value: Node) -> Node:
        """The whole of which one piece was written: the other pieces and the new one, side by side."""
        split = view.args[0]
        assert isinstance(split, Node)
        given = [*split.args[1:], split.kwargs.get("dim", 0)]
        axis = split.args[2] if len(split.args) > 2 else split.kwargs.get("dim", 0)
        join = _aten.cat.default
        if split.target is _aten.unbind.int:
            axis, join = given[0], _aten.stack.default
        values = split.meta["val"]
        again = self.call(split.target, (base, *split.args[1:]), values, dict(split.kwargs))
        pieces = [
            value if i == view.args[1] else self.call(operator.getitem, (again, i), piece)
            for i, piece in enumerate(values)
        ]
        return self.call(join, (pieces, axis), _value(base))

    def sizes(self, node: Node) -> list[Any]:
        """The sizes of a node's tensor: integers, or nodes that compute them."""
        sizes: list[Any] = []
        for axis, size in enumerate(_value(node).shape):
            if isinstance(size, int):
                sizes.append(size)
            else:
                sizes.append(self.call(_aten.sym_size.int, (node, axis), size))
        return sizes
