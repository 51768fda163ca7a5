"""The element types of torch, OpenVINO and this package's specs, side by side."""

from __future__ import annotations

import torch
from openvino import Type

#: What the frontend is told about a tensor's dtype. Complex tensors were made pairs of reals by `repair`.
OV_TYPES: dict[torch.dtype, Type] = {
    torch.bool: Type.boolean,
    torch.uint8: Type.u8,
    torch.int8: Type.i8,
    torch.int16: Type.i16,
    torch.int32: Type.i32,
    torch.int64: Type.i64,
    torch.float8_e4m3fn: Type.f8e4m3,
    torch.float8_e5m2: Type.f8e5m2,
    torch.float16: Type.f16,
    torch.bfloat16: Type.bf16,
    torch.float32: Type.f32,
    torch.float64: Type.f64,
}

#: A spec's dtype name -> the type of the port.
PORT_TYPES: dict[str, Type] = {
    "bool": Type.boolean,
    "uint8": Type.u8,
    "uint16": Type.u16,
    "uint32": Type.u32,
    "uint64": Type.u64,
    "int8": Type.i8,
    "int16": Type.i16,
    "int32": Type.i32,
    "int64": Type.i64,
    "float16": Type.f16,
    "bfloat16": Type.bf16,
    "float8_e4m3fn": Type.f8e4m3,
    "float8_e5m2": Type.f8e5m2,
    "float32": Type.f32,
    "float64": Type.f64,
}
