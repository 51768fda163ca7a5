"""MLX: Apple silicon. Programs are made on any machine and run on a Mac."""

from __future__ import annotations

from typing import Any

from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from torch.export import ExportedProgram

from ....artifact.spec import Json
from ....errors import MissingBackendError, UnsupportedModelError
from ....trace.record import Traced


def check(traced: Traced) -> None:
    """Refuse what MLX cannot run.

    Raises:
        UnsupportedModelError: For a static cache: the delegate has no update in place of an input.
        MissingBackendError: If the installed executorch has no MLX.
    """
    if _holds_static_cache(traced.spec.input_structure):
        raise UnsupportedModelError(
            f"MLX does not run {traced.spec.name!r} with a StaticCache: export it with the default cache, or for xnnpack."
        )
    _partitioner()


def delegate(program: ExportedProgram) -> EdgeProgramManager:
    """Lower with executorch's own MLX partitioner and passes."""
    from executorch.backends.mlx.passes import get_default_passes

    return to_edge_transform_and_lower(
        program,
        transform_passes=get_default_passes(),
        partitioner=[_partitioner()],
        compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True),
    )


def _partitioner() -> Any:
    try:
        from executorch.backends.mlx import MLXPartitioner
    except ImportError as error:
        raise MissingBackendError(
            "This executorch cannot write MLX programs: export with the macOS wheel of executorch >= 1.5, or for xnnpack."
        ) from error
    return MLXPartitioner()


def _holds_static_cache(tree: Json) -> bool:
    if not isinstance(tree, dict):
        return isinstance(tree, list) and any(map(_holds_static_cache, tree))
    name = str(tree.get("object", "")).rpartition(".")[2]
    return name.startswith("Static") or any(map(_holds_static_cache, tree.values()))
