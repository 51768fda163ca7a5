"""What `lower` says when it cannot, and that it neither changes the program nor copies its weights."""

import pytest
import torch

from transformers_exporters import OpenVINOConfig, OpenVINOExporter
from transformers_exporters.errors import LoweringError


@torch.library.custom_op("exporters_test::mystery", mutates_args=())
def mystery(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@mystery.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Mysterious(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(mystery(x) + 1)


def test_an_unknown_op_is_named_with_its_component_and_line() -> None:
    with pytest.raises(LoweringError, match=r"exporters_test\.mystery\.default in 'model'.*test_lower\.py:\d+"):
        OpenVINOExporter().export(Mysterious(), {"x": torch.randn(2, 3)}, OpenVINOConfig())


def test_constants_are_views_of_the_models_own_memory() -> None:
    linear = torch.nn.Linear(300, 300).eval()
    model = OpenVINOExporter().export(linear, {"input": torch.randn(2, 300)}, OpenVINOConfig())
    pointers = {
        node.data.__array_interface__["data"][0] for node in model.get_ops() if node.get_type_name() == "Constant"
    }
    assert linear.weight.data_ptr() in pointers


def test_the_traced_program_is_left_as_it_was() -> None:
    from transformers_exporters.backends.openvino.lower import lower
    from transformers_exporters.doors import find_backend
    from transformers_exporters.pipeline import trace_part
    from transformers_exporters.prepare.record import Part

    class InPlace(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            y[:, 0] = 1
            return torch.nn.functional.softplus(y)

    config = OpenVINOConfig()
    traced = trace_part(Part("model", InPlace(), {"x": torch.randn(2, 3)}), find_backend("openvino"), config)
    before = str(traced.program.graph)
    lower(traced, config)
    assert str(traced.program.graph) == before


class Mapped(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x float32 [b, t, 4]"""
        return torch.vmap(lambda rows: rows.cumsum(0) @ rows.mT)(x)


def test_a_vmap() -> None:
    exported = OpenVINOExporter().export_model(Mapped(), {"x": torch.randn(2, 5, 4)}, OpenVINOConfig(dynamic=True))
    x = torch.randn(2, 7, 4)
    torch.testing.assert_close(exported(x=x), Mapped()(x), atol=1e-4, rtol=0)
