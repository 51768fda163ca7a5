"""Say at export what the runtime would only say when it loads the program: an operator without a kernel."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.fx import Node

from ...errors import LoweringError
from ...repair.source_line import source_line


def count_nodes(program: ExportedProgram) -> dict[str, int]:
    """How much of an edge program was delegated.

    Returns:
        `delegated` and `undelegated` operators, and the number of delegated `parts`. Views cost nothing at run time
        and are not counted.
    """
    parts = delegated = undelegated = 0
    for module, node in _calls(program):
        if node.target is executorch_call_delegate:
            parts += 1
            own = getattr(module, node.args[0].target).original_module.graph
            delegated += sum(n.op == "call_function" and _is_work(n) for n in own.nodes)
        elif _is_work(node):
            undelegated += 1
    return {"delegated": delegated, "undelegated": undelegated, "parts": parts}


def undelegated_ops(program: ExportedProgram) -> Mapping[str, int]:
    """How often each operator runs in ExecuTorch's own kernels, most frequent first."""
    return dict(Counter(map(_name, own_calls(program))).most_common())


def own_calls(program: ExportedProgram) -> list[Node]:
    """The calls of an edge program that run in ExecuTorch's own kernels."""
    return [node for _, node in _calls(program) if node.target is not executorch_call_delegate and _is_work(node)]


def load_quantized_kernels(program: ExportedProgram) -> bool:
    """Load executorch's library of quantized kernels where an edge program needs it.

    Returns:
        Whether it does: an operator on quantized numbers was left by the delegate.
    """
    if not any(_is_quantized(node) for _, node in _calls(program)):
        return False
    import executorch.kernels.quantized  # noqa: F401 - registers the kernels, here and in the runtime

    return True


def _is_quantized(node: Node) -> bool:
    return getattr(node.target, "__name__", "").startswith("quantized_decomposed.")


def check_kernels(program: ExportedProgram, component: str) -> None:
    """Look up every operator of a program in execution form in the installed runtime.

    Raises:
        LoweringError: If the runtime has no kernel for one; names it and the model's source line.
    """
    known = _runtime_operators()
    if not known:
        return
    for _, node in _calls(program):
        schema = getattr(node.target, "_schema", None)
        if schema is None or not isinstance(node.target, torch._ops.OpOverload):
            continue
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        if name not in known and f"{name}.default" not in known and not name.startswith("executorch_prim"):
            raise LoweringError(
                f"ExecuTorch has no kernel for {name}, which {component!r} needs (at {source_line(node)}); "
                "change the model's code, or add a repair that rewrites it."
            )


def missing_operators(program: ExportedProgram, message: str) -> str:
    """The operator and the source line behind executorch's "Missing out variants: {'aten::x'}"."""
    names = re.findall(r"'([\w:.]+)'", message)
    for _, node in _calls(program):
        for name in names:
            if _name(node).split(".")[0] == name.split("::")[-1].split(".")[0]:
                return f"{name} (at {source_line(node)})"
    return ", ".join(names) or message


def _calls(program: ExportedProgram) -> Iterator[tuple[torch.fx.GraphModule, Node]]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.op == "call_function":
                    yield module, node


_FREE = re.compile(r"getitem|^(sym_|view_copy|alloc|_assert|et_view|\w*unsqueeze_copy|squeeze_copy|scalar_tensor)")


def _is_work(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor | tuple | list) and not _FREE.search(_name(node))


def _name(node: Node) -> str:
    """`aten.add.Tensor` -> `add.Tensor`."""
    return getattr(node.target, "__name__", str(node.target)).removeprefix("aten.")


def _runtime_operators() -> frozenset[str]:
    """The kernels of the installed runtime; empty where only the exporter's half of executorch is installed."""
    try:
        from executorch.runtime import Runtime
    except ImportError:
        return frozenset()
    return frozenset(Runtime.get().operator_registry.operator_names)
