"""Row-major memory everywhere. XNNPACK parts take and give row-major tensors, whatever the graph around them says."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ....workarounds import Workaround
from ..insertion import Inserter
from ..layout import is_row_major

_aten = torch.ops.aten


def apply(program: ExportedProgram) -> int:
    """Drop explicit memory formats, and feed resizing, which hands on its input's format, row-major inputs.

    Returns how many nodes changed.
    """
    count = 0
    for node in list(program.graph.nodes):
        if node.op != "call_function":
            continue
        wanted = node.kwargs.get("memory_format")
        if wanted not in (None, torch.contiguous_format, torch.preserve_format):
            node.kwargs = {**node.kwargs, "memory_format": torch.contiguous_format}
            count += 1
        source = node.args[0] if node.args else None
        if _resizes(node) and isinstance(source, Node) and not is_row_major(source.meta["val"]):
            copied = Inserter(node).call(_aten.clone.default, source, memory_format=torch.contiguous_format)
            node.replace_input_with(source, copied)
            count += 1
    return count


def _resizes(node: Node) -> bool:
    return getattr(node.target, "__name__", "").startswith(("upsample_", "_upsample_"))


WORKAROUND = Workaround(
    reason="A channels-last tensor that enters an XNNPACK part is read as row-major: wrong numbers (DINOv2's positions).",
    upstream="none: found here; executorch 1.5.1 only checks the layout of a part's own placeholders in an unused function",
    targets=("aten.upsample_bicubic2d", "aten.upsample_bilinear2d", "aten.clone"),
    apply=apply,
)
