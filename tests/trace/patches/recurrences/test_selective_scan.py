from __future__ import annotations

import pytest
import torch
from transformers import MambaConfig, MambaModel
from transformers.models.mamba import modeling_mamba

ID = "trace.patches.recurrences.selective_scan"


def build() -> MambaModel:
    torch.manual_seed(0)
    config = MambaConfig(
        vocab_size=64, hidden_size=16, state_size=4, num_hidden_layers=1, conv_kernel=4, use_cache=False
    )
    model = MambaModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def ids(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, 64, (batch, length), generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the loop over the sequence freezes its length")
def test_needed(runs_like):
    runs_like(build(), ids(3, 9), [ids(3, 5)], without=[ID])


def test_works(runs_like):
    """Right at lengths on both sides of a block of 16, with another batch."""
    runs_like(build(), ids(3, 9), [ids(2, 5), ids(4, 16), ids(2, 17), ids(2, 50)])


def test_the_scan_goes_on_from_a_state(runs_like):
    """Twelve steps at once equal eight steps and then four from their state."""

    class Scan(torch.nn.Module):
        def forward(self, x, dt, a, b, c):
            def scan(part, **options):
                return modeling_mamba.mamba_selective_scan(
                    x[:, :, part], dt[:, :, part], a, b[:, :, part], c[:, :, part], return_last_state=True, **options
                )

            first, state = scan(slice(None, 8))
            second, last = scan(slice(8, None), initial_state=state)
            whole, final = scan(slice(None))
            return torch.cat([first, second], -1) - whole, last - final

    g = torch.Generator().manual_seed(1)
    x, dt = torch.randn(2, 6, 12, generator=g), torch.rand(2, 6, 12, generator=g)
    b, c = torch.randn(2, 4, 12, generator=g), torch.randn(2, 4, 12, generator=g)
    a = -torch.rand(6, 4, generator=g)
    from transformers_exporters.workarounds import Patching, collect

    with Patching(collect("transformers_exporters.trace.patches")):
        for difference in Scan()(x, dt, a, b, c):
            assert difference.abs().max() < 1e-6
