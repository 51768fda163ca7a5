"""The run door of the OpenVINO backend: OpenVINO and numpy, nothing else."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...artifact.spec import ComponentSpec
from ...errors import ArtifactError, ConfigError, InputError, MissingBackendError

__all__ = ["OpenVINOSession", "open_session"]


def open_session(
    directory: Path,
    component: ComponentSpec,
    *,
    device: Any = None,
    threads: int | None = None,
    properties: Mapping[str, Any] | None = None,
) -> OpenVINOSession:
    """Open a component's graph.

    Args:
        directory: The artifact.
        component: The border; `component.files` are the graph and its weights.
        device: OpenVINO's name of a device (`"CPU"`, `"GPU"`, `"NPU"`, `"AUTO"`, in any case); default `"CPU"`.
        threads: Number of inference threads; OpenVINO's default is one a physical core.
        properties: Further compile properties, as `openvino.Core.compile_model` takes them; they win. By default the CPU
            computes in float32, whatever its own preference for 16 bits.

    Raises:
        MissingBackendError: If openvino is not installed.
        ConfigError: If the device is unknown.
        ArtifactError: If OpenVINO refuses the graph, or its inputs and outputs are not the manifest's.
    """
    try:
        import openvino
    except ImportError as error:
        raise MissingBackendError(
            'Running OpenVINO models needs openvino: pip install "transformers-exporters[openvino]".'
        ) from error
    core = openvino.Core()
    name = str(device or "CPU").upper()
    kind = name.partition(":")[0].partition(".")[0]
    if kind not in {"AUTO", "HETERO", "MULTI", "BATCH"} and kind not in {
        d.partition(".")[0] for d in core.available_devices
    }:
        raise ConfigError(f"OpenVINO has no device {name!r} here; it has {', '.join(core.available_devices)}.")
    graph, weights = (directory / file for file in component.files[:2])
    # The CPU plugin would compute in bfloat16 where the machine has it, and keep a stateful cache in 8 or 16 bits: errors
    # of 2e-3 on logits of 0.5 (tiny Llama, openvino 2026.4.1). The artifact promises its model's precision.
    options: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"} if kind == "CPU" else {}
    if threads is not None:
        options["INFERENCE_NUM_THREADS"] = threads
    options.update(properties or {})
    try:
        compiled = core.compile_model(core.read_model(graph, weights), name, options)
    except RuntimeError as error:
        raise ArtifactError(f"OpenVINO cannot open {graph.name}: {_first_line(error)}") from error
    return OpenVINOSession(component, compiled)


class OpenVINOSession:
    """One compiled graph and one infer request, reused from call to call; calls from several threads wait for each other.

    A stateful graph keeps its cache in the request: `run` continues from the last call, `reset` starts anew. So one loop at a
    time may use it.

    Attributes:
        spec: The component's border.
        arrays: `"numpy"`.
        compiled: The `openvino.CompiledModel`.
        request: The `openvino.InferRequest`.
    """

    arrays = "numpy"

    def __init__(self, spec: ComponentSpec, compiled: Any) -> None:
        import openvino

        self.spec = spec
        self.compiled = compiled
        self.request = compiled.create_infer_request()
        self._alone = threading.Lock()
        self._tensor, self._types = openvino.Tensor, openvino.Type
        self._inputs = {t.name: _port(compiled.inputs, t.port, spec) for t in spec.inputs}
        self._outputs = {t.name: _port(compiled.outputs, t.port, spec) for t in spec.outputs}
        stateful = spec.options.get("stateful")
        self._beam = _port(compiled.inputs, stateful["beam_idx"], spec) if stateful else None
        known = len(self._inputs) + (self._beam is not None)
        if len(compiled.inputs) != known or len(compiled.outputs) != len(self._outputs):
            raise ArtifactError(f"The ports of {spec.name} are not those of the manifest; export the model again.")

    def run(self, feeds: Mapping[str, Any], beam_idx: Any = None) -> dict[str, Any]:
        """Compute the outputs.

        Args:
            feeds: numpy arrays by input name, of the spec's dtypes; read without a copy if they are C-contiguous.
            beam_idx: For a stateful graph: int32 [batch], the row of the last call that each row continues. Default:
                its own. The batch may change with it from call to call, as beam search needs.

        Returns:
            numpy arrays by output name: copies, since the request's memory is written again by the next call.

        Raises:
            InputError: If the engine cannot compute the graph at these sizes.
        """
        with self._alone:
            return self._run(feeds, beam_idx)

    def _run(self, feeds: Mapping[str, Any], beam_idx: Any) -> dict[str, Any]:
        held = []  # OpenVINO reads the memory of the arrays; it must outlive the call
        for name, array in feeds.items():
            tensor = self._wrap(np.asarray(array))
            held.append(tensor)
            self.request.set_tensor(self._inputs[name], tensor)
        if self._beam is not None:
            rows = np.arange(self._batch(feeds)) if beam_idx is None else np.asarray(beam_idx)
            held.append(self._wrap(rows.astype(np.int32)))
            self.request.set_tensor(self._beam, held[-1])
        elif beam_idx is not None:
            raise InputError(f"{self.spec.name!r} is not stateful: it takes no beam_idx.")
        try:
            # `infer` says nothing of an error where the engine has one thread, and the results are those of the call before
            # (2026.4: a pooling over no rows).
            self.request.start_async()
            self.request.wait()
        except RuntimeError as error:
            raise InputError(f"OpenVINO cannot run {self.spec.name!r} on these inputs: {_first_line(error)}") from error
        return {t.name: _read(self.request.get_tensor(self._outputs[t.name]), t.dtype) for t in self.spec.outputs}

    def reset(self) -> None:
        """Forget the state of a stateful graph; the next call starts with an empty cache."""
        self.request.reset_state()

    def state(self) -> dict[str, Any]:
        """Copies of the state of a stateful graph, by the name of the input that each variable was."""
        variables = self.spec.options.get("stateful", {}).get("variables", {})
        held = {state.name: state.state for state in self.request.query_state()}
        return {name: _read(held[name], variables[name]["dtype"]) for name in variables}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from another state, for example the cache that a prefill graph returned.

        Args:
            state: numpy arrays by name, as `state` returns them; what is left out stays as it is.

        Raises:
            InputError: If the graph has no such state.
        """
        known = {variable.name: variable for variable in self.request.query_state()}
        for name, array in state.items():
            if name not in known:
                raise InputError(
                    f"{self.spec.name!r} has no state {name!r}; its state is {', '.join(known) or 'empty'}."
                )
            known[name].state = self._wrap(np.asarray(array))

    def _batch(self, feeds: Mapping[str, Any]) -> int:
        """The rows of the first call or of the one before: as many as the first input has along the batch axis."""
        variables = self.spec.options["stateful"]["variables"]
        names = {variables[name]["shape"][0] for name in self.spec.options["stateful"]["reordered"]}
        for tensor in self.spec.inputs:
            for axis, size in enumerate(tensor.shape):
                if size in names:
                    return int(np.shape(feeds[tensor.name])[axis])
        raise ArtifactError(f"No input of {self.spec.name!r} has the batch axis of its state; export the model again.")

    def _wrap(self, array: Any) -> Any:
        contiguous = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        if contiguous.dtype.name == "bfloat16":
            return self._tensor(contiguous.view(np.uint16), list(contiguous.shape), self._types.bf16)
        return self._tensor(contiguous, shared_memory=True)


def _port(ports: Any, name: str, spec: ComponentSpec) -> Any:
    for port in ports:
        if name in port.get_names():
            return port
    raise ArtifactError(f"The graph of {spec.name!r} has no port {name!r} of the manifest; export the model again.")


def _read(tensor: Any, dtype: str) -> Any:
    """A copy of a tensor's values, as the dtype of the spec."""
    if dtype == "bfloat16":
        import ml_dtypes

        return tensor.data.view(np.uint16).view(ml_dtypes.bfloat16).reshape(list(tensor.shape)).copy()
    return tensor.data.copy()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [
        line for line in lines if "failed at src" not in line and not line.startswith(("Exception from", "src/"))
    ]
    return (telling or lines or [type(error).__name__])[0]
