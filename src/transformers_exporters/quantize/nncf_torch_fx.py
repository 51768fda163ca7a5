"""Static quantization of the traced graph with NNCF's algorithms: smoothed activations, corrected biases."""

from __future__ import annotations

import logging
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
class NNCFTorchFXQuantizer(Quantizer):
    """NNCF's post-training quantization of a torch graph: 8 bits for weights and activations.

    Args:
        quantizer: A torchao PT2E quantizer that says what is quantized; NNCF then only decides how. None: NNCF's own choice.
        model_type: `"transformer"` keeps what attention is sensitive to in float and smooths activations; None does not.
            Read only where `quantizer` is None.
        smooth_quant: Shift the range of activations into the weights before rounding. Read only with a `quantizer`.
        fast_bias_correction: Correct biases by the mean error. Off leaves them.
    """

    formats: ClassVar[tuple[str, ...]] = ("dynamo", "onnx", "openvino")
    requires: ClassVar[Mapping[str, Requirement]] = {
        "nncf": Requirement(minimum="3.2", tested="3.4.0"),
        "torchao": Requirement(minimum="0.17", tested="0.18.0"),
    }

    quantizer: Any = None
    model_type: str | None = "transformer"
    smooth_quant: bool = False
    fast_bias_correction: bool = True

    def __post_init__(self) -> None:
        if self.model_type not in ("transformer", None):
            raise ConfigError(f"model_type must be 'transformer' or None, got {self.model_type!r}.")
        if self.quantizer is not None and not hasattr(self.quantizer, "annotate"):
            raise ConfigError(
                f"NNCFTorchFXQuantizer takes a torchao PT2E quantizer, got a {type(self.quantizer).__name__}."
            )

    @property
    def calibrates(self) -> bool:
        """It measures value ranges."""
        return True

    def quantize_program(self, traced: Traced, calibration: Calibration, export_format: str) -> Traced:
        """See `Quantizer.quantize_program`."""
        from .nncf import quiet

        feeds = [
            tuple(feed[tensor.name].clone() for tensor in traced.spec.inputs) for feed in calibration.feeds(traced.spec)
        ]
        module = as_graph_module(traced)
        with quiet(logging.ERROR), torch.no_grad():  # each call warns that it is experimental
            return from_graph_module(traced, self._quantized(module, feeds))

    def _quantized(self, module: GraphModule, feeds: list[Any]) -> Any:
        import nncf
        from nncf.experimental.torch.fx import quantize_pt2e

        data = nncf.Dataset(feeds)
        if self.quantizer is not None:
            return quantize_pt2e(
                module,
                self.quantizer,
                data,
                subset_size=len(feeds),
                smooth_quant=self.smooth_quant,
                fast_bias_correction=self.fast_bias_correction or None,
            )
        return nncf.quantize(
            module,
            data,
            subset_size=len(feeds),
            fast_bias_correction=self.fast_bias_correction,
            model_type=nncf.ModelType.TRANSFORMER if self.model_type else None,
            ignored_scope=nncf.IgnoredScope(names=_without_floats(module), validate=False),
        )


#: What takes whole numbers or booleans besides the floats that are quantized.
_MIXED = (torch.ops.aten.embedding.default, torch.ops.aten.scaled_dot_product_attention.default)


def _without_floats(module: GraphModule) -> list[str]:
    """The nodes that compute with sizes, booleans or whole numbers: NNCF takes all of them for floats (3.4.0)."""
    return [
        node.name
        for node in module.graph.nodes
        if node.op == "call_function"
        and node.target not in _MIXED
        and not all(map(_is_float, [node, *node.all_input_nodes]))
    ]


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")  # a weight has none
    if isinstance(value, torch.Tensor):
        return value.dtype.is_floating_point
    return not isinstance(value, torch.SymInt | int)
