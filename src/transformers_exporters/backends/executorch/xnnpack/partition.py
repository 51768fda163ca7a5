"""Which nodes XNNPACK computes."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.config.gemm_configs import ConvolutionConfig, LinearConfig
from executorch.backends.xnnpack.partition.config.generic_node_configs import (
    GenericNodePartitionerConfig,
    SliceCopyConfig,
    UnsqueezeCopyConfig,
    ViewCopyConfig,
)
from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.utils.quant_utils import tag_as_implicit_q_dq
from executorch.exir.backend.canonical_partitioners.config_partitioner import (
    ConfigerationBasedPartitioner,
    format_target_name,
)
from executorch.exir.backend.partitioner import DelegationSpec
from torch.export import ExportedProgram
from torch.fx.passes.infra.partitioner import Partition
from torch.utils._pytree import tree_leaves

from ..layout import is_never_empty, is_row_major
from ..planned_memory import of_weights
from .delegate import LeanXnnpack
from .ops import has_quantized_weight_only
from .parts import levels


class BatchedMatmul(GenericNodePartitionerConfig):  # executorch is untyped
    """Our own batched product."""

    target_name = "batched_matmul.default"

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        """Float only."""
        return [ConfigPrecisionType.FP32]


class AnySlice(SliceCopyConfig):
    """A slice with fixed ends of a fixed axis; executorch's own rule wants every axis fixed."""

    def check_constraints(self, node: torch.fx.Node, ep: ExportedProgram) -> bool:
        """Whether XNNPACK can cut it."""
        source, result = node.args[0].meta["val"], node.meta["val"]
        axis = (node.args[1] if len(node.args) > 1 else 0) % max(source.dim(), 1)
        step = node.args[4] if len(node.args) > 4 else 1
        start = node.args[2] if len(node.args) > 2 and node.args[2] is not None else 0
        fixed = all(isinstance(v, int) for v in (start, source.shape[axis], result.shape[axis]))
        return bool(
            fixed
            and step == 1
            and result.shape[axis] > 0
            and source.dim() <= 6
            and self.check_common_constraints(node, ep)
        )


class FixedUnsqueeze(UnsqueezeCopyConfig):
    """A new last axis; executorch's own rule takes shapes for which its serializer then fails."""

    def check_constraints(self, node: torch.fx.Node, ep: ExportedProgram) -> bool:
        """At most one axis may be dynamic: XNNPACK infers one size of a reshape."""
        dynamic = sum(not isinstance(size, int) for size in node.meta["val"].shape)
        return bool(dynamic <= 1 and super().check_constraints(node, ep))


class FixedConvolution(ConvolutionConfig):
    """Convolutions, without the 1-D ones that executorch's serializer cannot bring into two dimensions."""

    def check_constraints(self, node: torch.fx.Node, ep: ExportedProgram) -> bool:
        """At most one axis of a 1-D convolution may be dynamic."""
        shapes = [node.meta["val"].shape, node.args[0].meta["val"].shape]
        flat = len(shapes[0]) == 3
        dynamic = max(sum(not isinstance(size, int) for size in shape) for shape in shapes)
        return bool(not (flat and dynamic > 1) and super().check_constraints(node, ep))


class QuantizedWeightLinear(LinearConfig):
    """Products, also those of float inputs with an 8-bit weight, which executorch's own rule takes for half-quantized."""

    def get_deps(self, node: torch.fx.Node, ep: ExportedProgram) -> tuple[bool, list[torch.fx.Node]]:
        """Whether XNNPACK can multiply, and the nodes that belong to the product."""
        if not has_quantized_weight_only(node):
            found: tuple[bool, list[torch.fx.Node]] = super().get_deps(node, ep)
            return found
        fits, weight = self._get_weight_deps(node, ep, ConfigPrecisionType.DYNAMIC_QUANT)
        tag_as_implicit_q_dq(node.args[1])
        return fits and len(node.args) < 3, weight


_OURS = (BatchedMatmul, AnySlice, FixedConvolution, FixedUnsqueeze, QuantizedWeightLinear)
# executorch writes the maximum along an axis as a pooling whose window is the axis: its serializer refuses a negative axis,
# and one that may have several sizes has no window.
_LEFT_OUT = "max.dim"
#: Operators that make one scale of others; at most so many at once, one for each channel.
_SCALING = frozenset({"mul.Tensor", "div.Tensor", "pow.Tensor_Scalar"})
_MOST_SCALES = 4096
#: `XNN_MAX_TENSOR_DIMS`. UnivNet's location-variable convolution has seven.
_MOST_AXES = 6


class XnnpackParts(ConfigerationBasedPartitioner):
    """Tags every node that XNNPACK computes, in as few connected parts as possible."""

    def __init__(self) -> None:
        replaced = {_LEFT_OUT, *(config.target_name for config in _OURS)}
        configs: list[Any] = [c() for c in ALL_PARTITIONER_CONFIGS if c.target_name not in replaced]
        configs += [c() for c in _OURS]
        for config in configs:
            config.set_enabled_precision_types(None)
            config._check_inputs_are_valid_dtypes = _inputs_fit
        super().__init__(DelegationSpec(LeanXnnpack.__name__, []), configs)

    def get_matched_nodes_from_configs(self, ep: ExportedProgram) -> list[list[torch.fx.Node]]:
        """The nodes that XNNPACK computes, without those next to a tensor that is not row-major or has too many axes.

        A part takes and gives row-major memory whatever the graph says, so such a tensor would be read wrongly.
        """
        groups: list[list[torch.fx.Node]] = super().get_matched_nodes_from_configs(ep)
        groups = [group for group in groups if all(_fits(n) for node in group for n in _around(node))]
        fixed = of_weights(ep)
        return [group for group in groups if not any(_computes_a_scale(node, fixed) for node in group)]

    def generate_partitions(self, ep: ExportedProgram) -> list[Partition]:
        """Parts by their number."""
        parts = levels(ep.graph, self.get_matched_nodes_from_configs(ep))
        return [Partition(id=number, nodes=nodes) for number, nodes in enumerate(parts)]


def _inputs_fit(node: torch.fx.Node, dtypes: Container[torch.dtype]) -> bool:
    """Whether the inputs are tensors of one of `dtypes` that are never empty: XNNPACK holds no empty tensor.

    Takes the place of a method of executorch's rules, which refuse every size that is data, because it may be 0. So all of a
    vision encoder over cropped images (Pixtral), and the vocoder behind predicted durations (VITS), ran outside of XNNPACK.
    """
    values = [n.meta["val"] for n in tree_leaves(node.args) if isinstance(n, torch.fx.Node) and "val" in n.meta]
    values = [value for value in values if not isinstance(value, tuple)]
    tensors = all(isinstance(v, torch.Tensor) and v.dtype in dtypes and is_never_empty(v) for v in values)
    return tensors and len({value.dtype for value in values}) <= 1


def _around(node: torch.fx.Node) -> list[torch.fx.Node]:
    return [node, *node.all_input_nodes]


def _fits(node: torch.fx.Node) -> bool:
    """Whether XNNPACK can hold what a node returns; the program of a part that it cannot hold does not load."""
    value = node.meta.get("val")
    return not isinstance(value, torch.Tensor) or (value.dim() <= _MOST_AXES and is_row_major(value))


def _computes_a_scale(node: torch.fx.Node, fixed: Container[torch.fx.Node]) -> bool:
    """Whether a node computes a scale, or divides by one: a few numbers that follow from weights alone.

    XNNPACK takes numbers below 1.2e-38 for 0. In an integer-only model (I-BERT) a scale is a product of many, and what is
    divided by it became infinite.
    """
    name = format_target_name(getattr(node.target, "__name__", ""))
    if name == "div.Tensor" and isinstance(node.args[1], torch.fx.Node) and _is_scale(node.args[1], fixed):
        return True
    return name in _SCALING and _is_scale(node, fixed)


def _is_scale(node: torch.fx.Node, fixed: Container[torch.fx.Node]) -> bool:
    return node.op == "call_function" and node in fixed and node.meta["val"].numel() <= _MOST_SCALES


def mark_inferred_sizes(program: ExportedProgram) -> int:
    """Write the only symbolic size of a view as -1, which XNNPACK takes; returns how many views changed."""
    count = 0
    for node in program.graph.nodes:
        if node.op != "call_function" or not getattr(node.target, "__name__", "").endswith(
            f".{ViewCopyConfig.target_name}"
        ):
            continue
        sizes = node.args[1]
        symbolic = [i for i, size in enumerate(sizes) if not isinstance(size, int)]
        if len(symbolic) == 1 and -1 not in sizes:
            node.args = (node.args[0], [-1 if i == symbolic[0] else size for i, size in enumerate(sizes)])
            count += 1
    return count
