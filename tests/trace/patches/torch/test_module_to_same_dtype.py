from __future__ import annotations

import pytest
import torch

ID = "trace.patches.torch.module_to_same_dtype"


class Router(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.classifier = torch.nn.Linear(4, 3)

    def forward(self, x):
        self.classifier = self.classifier.to(torch.float32)
        return self.classifier(x)


def inputs(batch: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, 4, generator=torch.Generator().manual_seed(batch))}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="a trace cannot swap parameters")
def test_needed(runs_like):
    runs_like(Router(), inputs(3), [], without=[ID])


def test_works(runs_like):
    runs_like(Router(), inputs(3), [inputs(5)])
