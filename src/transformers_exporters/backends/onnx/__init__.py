"""ONNX: models that any ONNX runtime can run, opened here with ONNX Runtime."""

from ...doors import Backend, Requirement

BACKEND = Backend(
    format="onnx",
    extra="onnx",
    config=f"{__name__}.config:OnnxConfig",
    lower=f"{__name__}.lower:lower",
    save=f"{__name__}.lower:save",
    open=f"{__name__}.run:open_session",
    requires={
        "onnx": Requirement(minimum="1.18", tested="1.23.2"),
        "onnxscript": Requirement(minimum="0.5", tested="0.7.2"),
        "torch": Requirement(minimum="2.9", tested="2.13.0"),
    },
    runs_on={"onnxruntime": Requirement("1.20", "1.32.0", builds=("onnxruntime-gpu", "onnxruntime-directml"))},
    patches=f"{__name__}.patches",
    fixes="transformers_exporters.backends.onnx.fixes",
    # Recurrent layers stay whole. The engine knows more ops than all four do; its own error names what it does not know.
    ops=("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input", "*"),
)
