"""What cannot run is said at export."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transformers_exporters import ExecutorchConfig
from transformers_exporters.errors import ConfigError, LoweringError, MissingBackendError


class Mode(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """An operator for which ExecuTorch has no kernel."""
        return torch.mode(x, -1).values


class Powers(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x float32 [n]: a power of two with a size above, which ExecuTorch's own code does not expect."""
        return x.new_zeros(2 ** (x.shape[0] % 3))


class Doubled(torch.nn.Module):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Whole numbers only: nothing for XNNPACK."""
        return ids * 2


def test_an_operator_without_a_kernel_names_itself_and_its_line(export: Any) -> None:
    with pytest.raises(LoweringError, match=r"mode.*test_errors\.py:\d+, in forward"):
        export(Mode(), {"x": torch.randn(2, 5)})


def test_an_error_of_the_engine_is_said_with_the_line_of_the_model(export: Any) -> None:
    with pytest.raises(
        LoweringError, match=r"executorch could not take 'model': .*pow.*test_errors\.py:\d+, in forward.*repair"
    ):
        export(Powers(), {"x": torch.randn(5)})


def test_a_delegate_that_took_nothing_is_reported(export: Any) -> None:
    with pytest.warns(UserWarning, match="xnnpack took no operator"):
        exported = export(Doubled(), {"ids": torch.arange(6).reshape(2, 3)})
    assert exported.notes["delegated"] == 0
    assert exported.error(ids=torch.arange(12).reshape(3, 4)) == 0


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ConfigError, match="xnnpack, mlx, cuda"):
        ExecutorchConfig(backend="vulkan")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_without_a_gpu_says_what_to_do(export: Any) -> None:
    with pytest.raises(MissingBackendError, match='backend="xnnpack"'):
        export(Doubled(), {"ids": torch.arange(6).reshape(2, 3)}, backend="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: AOTInductor compiles for it")
def test_cuda_exports(export: Any) -> None:
    exported = export(Doubled(), {"ids": torch.arange(6).reshape(2, 3)}, backend="cuda", dynamic=False)
    assert exported.notes["delegated"] > 0
