"""The config of an ExecuTorch export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...configs import ExportConfig
from ...errors import ConfigError

#: The devices that a program can be lowered to, one file each in `targets/`.
TARGETS = ("xnnpack", "mlx", "cuda")


@dataclass(kw_only=True)
class ExecutorchConfig(ExportConfig):
    """Config of `ExecutorchExporter`.

    Args:
        backend: The delegate that computes what it can: `"xnnpack"` (any CPU), `"mlx"` (Apple silicon) or `"cuda"`.
            What it cannot compute runs in ExecuTorch's own kernels.
        alloc_graph_input: Give the inputs memory inside the program. `False`: the caller owns it.
        alloc_graph_output: Give the outputs memory inside the program. `False`: the caller hands over a buffer for each
            output (C++: `Method::set_output_data_ptr`), for example the one of the input that it updates.
        alloc_mutable_buffers: Give the model's own mutable buffers memory inside the program.

    Raises:
        ConfigError: If `backend` is none of the three, or a flag is not a bool.
    """

    export_format: ClassVar[str] = "executorch"

    backend: str = "xnnpack"
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend not in TARGETS:
            raise ConfigError(f"backend must be one of {', '.join(TARGETS)}, got {self.backend!r}.")
