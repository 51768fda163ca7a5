"""`repair.fixes.empty_to_zeros`: tensors that are filled after they are made survive in every engine."""

import pytest
import torch

from transformers_exporters import LoweringError, OpenVINOConfig, OpenVINOExporter


class Filled(torch.nn.Module):
    """Three tensors, uninitialized at first, every place of them written."""

    def forward(self, x):
        wide = torch.empty(x.shape[0], 2 * x.shape[1], dtype=x.dtype)
        wide[:, : x.shape[1]] = x
        wide[:, x.shape[1] :] = -x
        like, new = torch.empty_like(x), x.new_empty(x.shape[0], 2)
        like[:] = x * 2
        new[:, 0] = x.sum(-1)
        new[:, 1] = 1.0
        return wide, like, new


def exported(**fields):
    config = OpenVINOConfig(dynamic=True, **fields)
    return OpenVINOExporter().export_model(Filled(), {"x": torch.randn(3, 4)}, config)


def test_needed():
    with pytest.raises(LoweringError, match="empty"):
        exported(disabled_workarounds=("repair.fixes.empty_to_zeros",))


def test_works():
    model = exported()
    for size in ((3, 4), (1, 9)):
        x = torch.randn(*size)
        for got, wanted in zip(model(x=x), Filled()(x), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-5)
