"""The ExecuTorch backend: mobile and edge devices, through XNNPACK, Apple MLX or CUDA."""

from ...doors import Backend, Requirement

_EXECUTORCH = Requirement(minimum="1.0", tested="1.5.1")

BACKEND = Backend(
    format="executorch",
    extra="executorch",
    config=f"{__name__}.config:ExecutorchConfig",
    lower=f"{__name__}.lower:lower",
    save=f"{__name__}.save:save",
    open=f"{__name__}.run:open_session",
    requires={"executorch": _EXECUTORCH, "torch": Requirement(minimum="2.9", tested="2.13.0")},
    runs_on={"executorch": _EXECUTORCH},
    ops=(
        "aten.lstm.input",
        "aten.gru.input",
        "aten.rnn_tanh.input",
        "aten.rnn_relu.input",
        "*",
    ),  # the engine knows more ops than all four do; its own error names what it does not know
    experts="batched_mm",
    patches=f"{__name__}.patches",
    fixes=f"{__name__}.fixes",
)
