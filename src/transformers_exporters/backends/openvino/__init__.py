"""OpenVINO: models for Intel CPUs, GPUs and NPUs, converted from the traced graph without ONNX in between."""

from ...doors import Backend, Requirement

BACKEND = Backend(
    format="openvino",
    extra="openvino",
    config=f"{__name__}.config:OpenVINOConfig",
    lower=f"{__name__}.lower:lower",
    save=f"{__name__}.save:save",
    open=f"{__name__}.run:open_session",
    requires={
        "openvino": Requirement(minimum="2026.0", tested="2026.4.1"),
        "torch": Requirement(minimum="2.9", tested="2.13.0"),
    },
    runs_on={"openvino": Requirement(minimum="2026.0", tested="2026.4.1")},
    # Recurrent layers stay whole. The engine knows more ops than all four do; its own error names what it does not know.
    ops=("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input", "*"),
    experts="batched_mm",
    patches=f"{__name__}.patches",
    fixes=None,
)
