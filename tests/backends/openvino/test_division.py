"""Quotients and remainders of whole numbers, also below zero and beyond what float32 holds."""

import torch

from transformers_exporters import OpenVINOConfig, OpenVINOExporter


class Divided(torch.nn.Module):
    def forward(self, x: torch.Tensor, divisor: torch.Tensor):
        """x and divisor int64 [n]; also lengths by a size that is negated."""
        rounded_up = -(-x.shape[0] // 3)
        return x // divisor, x % divisor, x // 1009, x % -1009, x[:rounded_up] + rounded_up


def inputs(n: int) -> dict[str, torch.Tensor]:
    make = torch.Generator().manual_seed(n)
    x = torch.randint(-(2**31) + 1, 2**31 - 1, (n,), generator=make)
    return {"x": x // torch.tensor([1, 10**6]).repeat(n)[:n], "divisor": torch.arange(n) * 7919 % 4001 + 1}


def test_the_quotient_is_python_s() -> None:
    exported = OpenVINOExporter().export_model(Divided(), inputs(7), OpenVINOConfig(dynamic=True))
    for n in (7, 1000):
        for got, wanted in zip(exported(**inputs(n)), Divided()(**inputs(n)), strict=True):
            assert torch.equal(got, wanted)
