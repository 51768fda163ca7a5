"""CUDA: NVIDIA GPUs, through AOTInductor. The graph is compiled on the machine that exports."""

from __future__ import annotations

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from torch.export import ExportedProgram

from ....errors import MissingBackendError
from ....trace.record import Traced


def check(traced: Traced) -> None:
    """Raise `MissingBackendError` without a GPU: AOTInductor compiles and tunes its kernels on it."""
    if not torch.cuda.is_available():
        raise MissingBackendError(
            'backend="cuda" compiles kernels on the exporting machine and found no CUDA GPU: export on a machine with '
            'one and a CUDA build of torch, or use backend="xnnpack".'
        )


def delegate(program: ExportedProgram) -> EdgeProgramManager:
    """Compile the whole graph into one part."""
    from executorch.backends.cuda.cuda_backend import CudaBackend
    from executorch.backends.cuda.cuda_partitioner import CudaPartitioner

    partitioner = CudaPartitioner([CudaBackend.generate_method_name_compile_spec("forward")])
    return to_edge_transform_and_lower(
        program, partitioner=[partitioner], compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
