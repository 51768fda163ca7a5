"""What the frontend asks of every decoder."""

from __future__ import annotations

from typing import Any

from openvino import OVAny, PartialShape, Type
from openvino.frontend.pytorch.py_pytorch_frontend import _FrontEndPytorchDecoder as Decoder


class BaseDecoder(Decoder):
    """The answers that are the same for all decoders."""

    def __init__(self) -> None:
        Decoder.__init__(self)
        self.children: list[Decoder] = []  # the frontend keeps no reference of its own

    def decoder_type_name(self) -> str:
        return "fx"

    def get_schema(self) -> str:
        return "NONE"

    def get_subgraphs(self) -> list[Any]:
        return []

    def get_subgraph_size(self) -> int:
        return len(self.get_subgraphs())

    def as_string(self) -> None:
        return None

    def may_produce_alias(self, in_index: int, out_index: int) -> bool:
        return False

    def get_rt_info(self) -> dict[str, Any]:
        return {}

    def get_input_debug_name(self, index: int) -> str:
        return f"input{index}"

    def get_input_signature_name(self, index: int) -> str:
        return f"input{index}"

    def get_output_debug_name(self, index: int) -> str:
        return f"output{index}"

    def get_input_shape(self, index: int) -> PartialShape:
        return PartialShape.dynamic()

    def get_output_shape(self, index: int) -> PartialShape:
        return PartialShape.dynamic()

    def get_input_type(self, index: int) -> OVAny:
        return OVAny(Type.dynamic)

    def get_output_type(self, index: int) -> OVAny:
        return OVAny(Type.dynamic)

    def get_input_strides(self, index: int) -> list[int]:
        return []

    def is_input_inlined(self, index: int) -> bool:
        return False

    def input_is_none(self, index: int) -> bool:
        return False

    def num_of_outputs(self) -> int:
        return len(self.outputs())

    def output(self, index: int) -> int:
        return int(self.outputs()[index])

    def mark_node(self, node: Any) -> Any:
        return node
