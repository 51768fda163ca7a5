"""Static quantization of the traced graph with any of torchao's PT2E quantizers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.fx import GraphModule, Node

from ..doors import Requirement
from ..errors import ConfigError
from ..trace.graph_modules import as_graph_module, from_graph_module
from ..trace.record import Traced
from .contract import Calibration, Quantizer


@dataclass(kw_only=True)
class PT2EQuantizer(Quantizer):
    """prepare_pt2e, calibration, convert_pt2e on the traced graph.

    Args:
        quantizer: A torchao PT2E quantizer, which says what is quantized and how. None: executorch's `XNNPACKQuantizer` for
            ExecuTorch and torchao's `X86InductorQuantizer` for the others, both static, 8 bits, weights by row.
    """

    formats: ClassVar[tuple[str, ...]] = ("dynamo", "onnx", "openvino", "executorch")
    requires: ClassVar[Mapping[str, Requirement]] = {"torchao": Requirement(minimum="0.17", tested="0.18.0")}

    quantizer: Any = None

    def __post_init__(self) -> None:
        if self.quantizer is not None and not hasattr(self.quantizer, "annotate"):
            raise ConfigError(
                f"PT2EQuantizer takes a torchao PT2E quantizer (an XNNPACKQuantizer, say), got a "
                f"{type(self.quantizer).__name__}."
            )

    @property
    def calibrates(self) -> bool:
        """It measures value ranges."""
        return True

    def quantize_program(self, traced: Traced, calibration: Calibration, export_format: str) -> Traced:
        """See `Quantizer.quantize_program`."""
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        quantizer = self.quantizer if self.quantizer is not None else default_quantizer(export_format)
        module = as_graph_module(traced)
        keep_whole_numbers(module)
        prepared = prepare_pt2e(module, quantizer)
        run_calibration(prepared, traced, calibration)
        return from_graph_module(traced, convert_pt2e(prepared))


_SCALAR_FORM = {
    torch.ops.aten.add.Tensor: torch.ops.aten.add.Scalar,
    torch.ops.aten.mul.Tensor: torch.ops.aten.mul.Scalar,
}


def keep_whole_numbers(module: GraphModule) -> None:
    """Write a sum of a whole-number tensor and a number so that a quantizer leaves the number alone.

    `XNNPACKQuantizer` makes every such number a float tensor, positions and indices then are floats, and the graph does not
    run (executorch 1.5.1, `_convert_scalars_to_attrs`).
    """
    for node in module.graph.nodes:
        value = node.meta.get("val")
        whole = isinstance(value, torch.Tensor) and not value.dtype.is_floating_point
        scalar = len(node.args) == 2 and not isinstance(node.args[1], Node) and not node.kwargs
        if node.target in _SCALAR_FORM and whole and scalar:
            node.target = _SCALAR_FORM[node.target]
    module.recompile()


#: What is quantized on ExecuTorch, the same as `X86InductorQuantizer` quantizes. `set_global` rounds residual sums and gates
#: too, each with one scale: MiniLM's smallest cosine is 0.816 with them and 0.935 without (`benchmarks/quantization.py`).
_PRODUCTS = (
    torch.ops.aten.linear.default,
    torch.ops.aten.conv1d.default,
    torch.ops.aten.conv2d.default,
    torch.ops.aten.convolution.default,
    torch.ops.aten.conv_transpose2d.input,
)


def default_quantizer(export_format: str) -> Any:
    """The torchao quantizer for a format's kernels."""
    if export_format == "executorch":
        from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
            XNNPACKQuantizer,
            get_symmetric_quantization_config,
        )

        quantizer, config = XNNPACKQuantizer(), get_symmetric_quantization_config(is_per_channel=True)
        for target in _PRODUCTS:
            quantizer.set_operator_type(target, config)
        return quantizer
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    return X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())


def run_calibration(module: torch.nn.Module, traced: Traced, calibration: Calibration) -> None:
    """Run a graph module of a component on all its calibration data; the data stays as it is."""
    with torch.no_grad():
        for feeds in calibration.feeds(traced.spec):
            module(*(feeds[tensor.name].clone() for tensor in traced.spec.inputs))
