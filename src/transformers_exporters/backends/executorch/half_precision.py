"""Say at export that a kernel does not take 16-bit numbers: the runtime's registry knows kernels, but not their dtypes.

The program is run once on the traced inputs, in a process of its own (some kernels abort). Only 16-bit programs with work
left to ExecuTorch's own kernels pay for this; XNNPACK's share and the other dtypes are known to run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from ...errors import LoweringError
from ...repair.source_line import source_line
from .kernels import own_calls

_HALVES = (torch.float16, torch.bfloat16)
#: A larger program is not written to disk a second time, and its user is told so.
_LARGEST = 2**31
_SECONDS = 300
_RUN = """
import sys, torch
from executorch.runtime import Runtime
directory = sys.argv[1]
program = Runtime.get().load_program(directory + "/model.pte")
program.load_method("forward").execute(torch.load(directory + "/inputs.pt"))
"""


def calls_in_half_precision(program: ExportedProgram) -> list[torch.fx.Node]:
    """The calls of an edge program for which the runtime's own kernels see 16-bit numbers."""
    return [node for node in own_calls(program) if _dtypes(node)]


def check_half_precision(
    planned: Any, calls: Sequence[torch.fx.Node], inputs: Sequence[torch.Tensor], component: str
) -> None:
    """Run a program once.

    Args:
        planned: The `ExecutorchProgramManager`.
        calls: What `calls_in_half_precision` found.
        inputs: The program's inputs, at the traced sizes.
        component: Its name, for the message.

    Raises:
        LoweringError: If it does not run; names the operator, its dtypes and the model's source line.
    """
    if len(planned._pte_data) > _LARGEST:
        warnings.warn(f"{component!r} is too large to be tried out: run it once before you ship it.", stacklevel=3)
        return
    with tempfile.TemporaryDirectory() as scratch:
        with open(Path(scratch) / "model.pte", "wb") as stream:
            planned._pte_data.write_to_file(stream)
        torch.save([value.detach().clone().contiguous() for value in inputs], Path(scratch) / "inputs.pt")
        command = [sys.executable, "-W", "ignore", "-c", _RUN, scratch]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            warnings.warn(f"{component!r} took over {_SECONDS} s to be tried out: run it once.", stacklevel=3)
            return
    if ran.returncode:
        raise LoweringError(_explain(ran.stderr, calls, component))


def _explain(log: str, calls: Sequence[torch.fx.Node], component: str) -> str:
    found = re.search(r"in operator (?:\w+::)?(\w+)\.", log)
    failed = [node for node in calls if found and _base_name(node) == found[1]]
    if not failed:
        said = [line.partition("] ")[2] for line in log.splitlines() if "Check failed" in line or " failed at " in line]
        reason = "; ".join(said) or log.strip()[-300:]
        return f"ExecuTorch cannot run {component!r}, which computes partly in 16 bits: {reason}; export it in float32."
    dtypes = " and ".join(_dtypes(failed[0]))
    return (
        f"ExecuTorch's kernel of {found[1] if found else ''} does not take {dtypes}, which {component!r} gives it (at "
        f"{source_line(failed[0])}); export the model in float32."
    )


def _base_name(node: torch.fx.Node) -> str:
    """`aten.add.Tensor` -> `add`."""
    parts = getattr(node.target, "__name__", str(node.target)).split(".")
    return parts[-2] if len(parts) > 1 else parts[0]


def _dtypes(node: torch.fx.Node) -> list[str]:
    """The 16-bit dtypes among a call's inputs and results."""
    values = [n.meta.get("val") for n in (*node.all_input_nodes, node)]
    found = {v.dtype for v in values if isinstance(v, torch.Tensor) and v.dtype in _HALVES}
    return sorted(str(dtype).removeprefix("torch.") for dtype in found)
