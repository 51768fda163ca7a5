"""Images, sequences and volumes that are resized."""

from __future__ import annotations

from openvino import Output, Type
from openvino import opset15 as ops

from ..call import Call, Translation, constant, numbers


def _resize(mode: str) -> Translation:
    """A translation to `Interpolate`.

    The frontend's own takes the first place of an axis of which one is left (`pytorch_half_pixel`); torch takes the middle
    (2026.4).
    """

    def translate(call: Call) -> Output:
        data, axes = call["input"], range(2, call.traced("input").dim())
        size, factors = call["output_size"], call["scale_factors"]
        target = numbers(size) if size is not None else constant(list(factors), Type.f32)
        return ops.interpolate(
            data,
            target,
            mode,
            "sizes" if size is not None else "scales",
            coordinate_transformation_mode="align_corners" if call["align_corners"] else "half_pixel",
            cube_coeff=-0.75,
            axes=constant(list(axes), Type.i64),
        ).output(0)

    return translate


TRANSLATIONS = {
    # Along one axis the same as "linear_onnx", of which the engine cannot resize a weight with three axes (2026.4).
    "aten.upsample_linear1d.vec": _resize("linear"),
    "aten.upsample_bilinear2d.vec": _resize("linear_onnx"),
    "aten.upsample_trilinear3d.vec": _resize("linear_onnx"),
    "aten.upsample_bicubic2d.vec": _resize("cubic"),
}
