"""`topk`: as many places as data say, none of them too."""

import pytest
import torch

import transformers_exporters as te


class Most(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """float32 [batch, n] -> for each row, as many of its largest as the most that one row has above 0."""
        most = (x > 0).sum(1).amax().item()
        torch._check(most >= 0)
        torch._check(most <= x.shape[1])
        values, places = torch.topk(x, most, dim=1)
        smallest = torch.topk(x.T, 2, dim=-2, largest=False)
        return values, places, values.sum(1), *smallest


@pytest.mark.parametrize("positive", [[3, 1], [0, 0], [5, 0]])
def test_any_number_of_places(positive: list[int]) -> None:
    def rows(counts: list[int], length: int) -> torch.Tensor:
        return torch.stack(
            [(torch.randperm(length) + 1.0) * torch.where(torch.arange(length) < c, 1, -1) for c in counts]
        )

    exported = te.OpenVINOExporter().export_model(Most(), {"x": rows([3, 1], 5)}, te.OpenVINOConfig(dynamic=True))
    for x in (rows([2, 4, 1], 6), rows(positive, 5)):
        torch.testing.assert_close(tuple(exported(x=x)), Most()(x))
