"""Says where in the model's source a node of a graph came from."""

from __future__ import annotations

import re

from torch.fx import Node

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n\s+(?!File )(.*))?')


def source_line(node: Node) -> str:
    """`file:line, in function: code` of the innermost frame outside torch that made a node."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if "/torch/" not in frame[0].replace("\\", "/")]
    if not frames:
        return "no source line known"
    file, line, function, code = (own or frames)[-1]
    return f"{file}:{line}, in {function}" + (f": {code.strip()}" if code.strip() else "")
