"""Take operators apart into core ones, each kind of call once.

`ExportedProgram.run_decompositions` traces the whole graph twice; with symbolic sizes that is half of an export. Only a
few nodes of a graph need it, and the layers of a model repeat them. So each such node is traced alone, and the result is
copied to every node with the same operator and equal arguments. Graphs that write into their inputs or hold subgraphs are
left to `run_decompositions`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import nullcontext
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from .functional import NotFunctional, make_functional, writes_into_inputs
from .meta_keys import makes_sizes, meta_key, size_key

_Table = dict[Any, Callable[..., Any]]

#: What a new node takes over from the node that it stands for.
INHERITED = ("stack_trace", "nn_module_stack", "source_fn_stack", "custom")


def own_copy(program: ExportedProgram) -> ExportedProgram:
    """A copy of the graph over the same weights."""
    copied = copy.copy(program)
    copied._graph_module = copy.deepcopy(program.graph_module)
    copied._graph_module.delete_all_unused_submodules()  # regions that a repair has put into the graph itself
    _keep_names(program.graph, copied.graph)
    copied._graph_signature = copy.deepcopy(program.graph_signature)
    _name_outputs(copied)  # a repair may have put another node there
    copied._state_dict = dict(program.state_dict)
    copied._constants = dict(program.constants)
    return copied


def _keep_names(original: Graph, copied: Graph) -> None:
    """Name the nodes as in the original, by which the signature knows them; a copy renames what shadows a builtin."""
    for old, new in zip(original.nodes, copied.nodes, strict=True):
        new.name = old.name


def decompose(program: ExportedProgram, table: _Table, whole: Collection[Any]) -> ExportedProgram:
    """`program.run_decompositions(table)`. `program` may be changed.

    Args:
        program: A graph whose nodes all have their `val`.
        table: Decompositions by operator.
        whole: Operators that are kept.
    """
    made = _functional(program)
    if made is None:
        return program.run_decompositions(table)
    program = made
    with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):
        complete = _Expansion(program.graph, table, whole).run()
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program if complete else program.run_decompositions(table)


def _functional(program: ExportedProgram) -> ExportedProgram | None:
    """The program without in-place ops; None where that takes a trace: they write into its inputs, or in unknown ways."""
    if _is_functional(program.graph):
        return program
    if any(_holds_subgraph(node) for node in program.graph.nodes) or writes_into_inputs(program.graph):
        return None
    graph = copy.deepcopy(program.graph)
    _keep_names(program.graph, graph)
    try:
        make_functional(graph)
    except NotFunctional:
        return None
    made = copy.copy(program)
    made._graph_module = GraphModule(program.graph_module, graph)
    made._graph_signature = copy.deepcopy(program.graph_signature)
    _name_outputs(made)
    return made


def _name_outputs(program: ExportedProgram) -> None:
    """Let the signature name the nodes that are returned."""
    results: Any = program.graph.output_node().args[0]
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        if isinstance(result, Node):
            spec.arg.name = result.name


def _holds_subgraph(node: Node) -> bool:
    return node.op == "get_attr" or isinstance(node.target, HigherOrderOperator)


def _is_functional(graph: Graph) -> bool:
    """Whether no node writes into a tensor, and none calls a subgraph."""
    for node in graph.nodes:
        if _holds_subgraph(node):
            return False
        if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
            return False
    return True


def _is_composite(op: OpOverload) -> bool:
    """Whether torch implements it by other operators only. Sizes are no tensors and have no parts."""
    returns_tensors = any("Tensor" in str(each.type) for each in op._schema.returns)
    return returns_tensors and op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)


#: One operator by another name. Strides say nothing here. A retraced `item` would be another number.
_SAME: dict[Any, Any] = {
    torch.ops.aten.reshape.default: torch.ops.aten.view.default,
    torch.ops.aten.detach_.default: torch.ops.aten.detach.default,
    torch.ops.aten.item.default: torch.ops.aten._local_scalar_dense.default,
}


class _Expansion:
    """One walk over a graph that replaces every node to be decomposed."""

    def __init__(self, graph: Graph, table: _Table, whole: Collection[Any]) -> None:
        self._graph = graph
        self._whole = whole
        self._table = table
        self._templates: dict[Hashable, Graph | None] = {}
        self._sizes: dict[sympy.Expr, Node] = {}

    def run(self) -> bool:
        """False where an operator's parts write into a tensor; the graph is valid, but not all of it is decomposed."""
        for node in list(self._graph.nodes):
            node.target = _SAME.get(node.target, node.target)
            if node.op == "call_function" and self._has_parts(node.target):
                template = self._template(node)
                if template is None:
                    return False
                self._replace(node, template)
            self._remember_size(node)
        return True

    def _has_parts(self, target: Any) -> bool:
        if not isinstance(target, OpOverload) or target in self._whole:
            return False
        return target in self._table or _is_composite(target)

    def _remember_size(self, node: Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            self._sizes.setdefault(value.node.expr, node)

    def _template(self, node: Node) -> Graph | None:
        values = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        key = (node.target, meta_key(values))
        if key in self._templates:
            return self._templates[key]
        template = _traced(node, values, self._table)
        if template is None or not any(makes_sizes(part.target) for part in template.nodes):  # another count, each time
            self._templates[key] = template
        return template

    def _replace(self, node: Node, template: Graph) -> None:
        """Put a copy of `template` in `node`'s place; a size that the graph has already is not computed again."""
        inputs = iter(_varying(node.args, node.kwargs))
        copies: dict[Node, Any] = {}
        with self._graph.inserting_before(node):
            for part in template.nodes:
                if part.op == "placeholder":
                    copies[part] = next(inputs)
                elif part.op == "output":
                    result = map_arg(part.args[0], lambda n: copies[n])
                else:
                    copies[part] = self._copy(part, copies, node)
        if isinstance(result, Node):
            node.replace_all_uses_with(result)
        elif not isinstance(result, list | tuple):  # a size that turned out constant
            for user in list(node.users):
                user.args, user.kwargs = map_arg((user.args, user.kwargs), lambda n: result if n is node else n)
        else:
            for user in list(node.users):  # getitem
                place: Any = user.args[1]
                user.replace_all_uses_with(result[place])
                self._graph.erase_node(user)
        self._graph.erase_node(node)

    def _copy(self, part: Node, copies: Mapping[Node, Any], origin: Node) -> Node:
        value = part.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr in self._sizes:
            return self._sizes[value.node.expr]
        copied = self._graph.node_copy(part, lambda n: copies[n])
        copied.meta = {"val": value, **{key: origin.meta[key] for key in INHERITED if key in origin.meta}}
        self._remember_size(copied)
        return copied


def _varying(args: Any, kwargs: Any) -> list[Node]:
    """The nodes among a call's arguments, in order, each as often as it is there."""
    return [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Node)]


def _traced(node: Node, values: Any, table: _Table) -> Graph | None:
    """One call in core operators: placeholders in the order of `_varying`. None if a part writes into a tensor."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Node)]
    given = pytree.tree_leaves(values)
    target: Any = node.target

    def call(*varying: Any) -> Any:
        filled = list(leaves)
        for place, value in zip(places, varying, strict=True):
            filled[place] = value
        args, kwargs = pytree.tree_unflatten(filled, structure)
        return target(*args, **kwargs)

    mode = detect_fake_mode(given) or detect_fake_mode(pytree.tree_leaves(node.meta["val"]))
    with mode or nullcontext(), enable_python_dispatcher(), torch.no_grad():
        traced = make_fx(call, decomposition_table=table)(*_distinct([given[i] for i in places]))
    _drop_restrides(traced.graph)
    traced.graph.eliminate_dead_code()
    return traced.graph if _is_functional(traced.graph) else None


def _distinct(values: list[Any]) -> list[Any]:
    """The same values, no tensor object twice: nodes of one kind share their fake value, which a trace takes for one."""
    seen: set[int] = set()
    made = []
    for value in values:
        if isinstance(value, torch.Tensor) and id(value) in seen:
            value = value.new_empty_strided(value.shape, value.stride())
        seen.add(id(value))
        made.append(value)
    return made


def _drop_restrides(graph: Graph) -> None:
    """Pooling to one value marks its result as channels-last in place. Memory is row-major here, so that says nothing."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.as_strided_.default):
        source, sizes = node.args[0], node.args[1]
        values = [size.meta["val"] if isinstance(size, Node) else size for size in sizes]
        if [size_key(v) for v in values] == [size_key(v) for v in source.meta["val"].shape]:
            node.replace_all_uses_with(source)
            graph.erase_node(node)
