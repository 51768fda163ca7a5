"""The run door of the ONNX backend: ONNX Runtime on numpy arrays, and in place on buffers of the caller's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...artifact.spec import ComponentSpec, TensorSpec
from ...errors import ArtifactError, ConfigError, InputError, MissingBackendError
from .buffers import ELEMENT_TYPES, Buffer, array_of, describe_buffer, readable_array

__all__ = ["OnnxSession", "open_session"]

# State of up to this size is written beside its buffer and copied, unless the lowering proved that in place is safe.
_SMALL_STATE = 4096

_NO_KERNEL = (
    ". Its providers have no kernel for an op in that type: a bfloat16 model needs a provider that computes in it"
    " (CUDA), or an export of `model.float()` or `model.half()`."
)


def open_session(
    directory: Path,
    component: ComponentSpec,
    *,
    providers: Sequence[Any] | None = None,
    provider_options: Sequence[Mapping[str, Any]] | None = None,
    session_options: Any = None,
    threads: int | None = None,
    device: Any = None,
) -> OnnxSession:
    """Open a component's graph.

    Args:
        directory: The artifact.
        component: The border; `component.files[0]` is the graph, which finds its weights beside it.
        providers: ONNX Runtime's execution providers, in order; wins over `device`. Those that it lacks are passed over
            as long as it has one of them.
        provider_options: Options of the providers, as `onnxruntime.InferenceSession` takes them.
        session_options: An `onnxruntime.SessionOptions`.
        threads: Threads within an operator; ONNX Runtime's default is one a physical core.
        device: `"cpu"` (the default), `"cuda"` or `"cuda:1"`.

    Raises:
        MissingBackendError: If onnxruntime is not installed, or lacks the device's provider or all of `providers`.
        ConfigError: If `threads` is given beside `session_options`, or the device is unknown.
        ArtifactError: If ONNX Runtime refuses the graph, or its inputs and outputs are not the manifest's.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingBackendError(
            'Running ONNX needs onnxruntime: pip install "transformers-exporters[onnx]".'
        ) from error
    if threads is not None:
        if session_options is not None:
            raise ConfigError("Set intra_op_num_threads in the session_options instead of passing threads too.")
        session_options = onnxruntime.SessionOptions()
        session_options.intra_op_num_threads = threads
    available = onnxruntime.get_available_providers()
    if providers is None:
        providers = _providers(str(device or "cpu"), available)
    names = [provider if isinstance(provider, str) else provider[0] for provider in providers]
    if names and not set(names) & set(available):  # ONNX Runtime would warn, and run on the CPU
        raise MissingBackendError(f"This onnxruntime has no {' and no '.join(names)}; it has {', '.join(available)}.")
    graph = directory / component.files[0]
    try:
        engine = onnxruntime.InferenceSession(
            str(graph), sess_options=session_options, providers=providers, provider_options=provider_options
        )
    except ValueError as error:
        raise ConfigError(f"ONNX Runtime does not take these providers: {error}") from error
    except Exception as error:
        advice = _NO_KERNEL if "NOT_IMPLEMENTED" in str(error) else ""
        raise ArtifactError(f"ONNX Runtime cannot open {graph.name}: {str(error).splitlines()[0]}{advice}") from error
    for kind, tensors, ports in (
        ("input", component.inputs, engine.get_inputs()),
        ("output", component.outputs, engine.get_outputs()),
    ):
        if {tensor.port for tensor in tensors} != {port.name for port in ports}:
            raise ArtifactError(f"The {kind}s of {graph.name} are not those of the manifest; export the model again.")
    return OnnxSession(component, engine)


def _providers(device: str, available: Sequence[str]) -> list[Any]:
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return ["CPUExecutionProvider"]
    if kind != "cuda" or not (index.isdigit() or not index):
        raise ConfigError(
            f'ONNX Runtime runs here on "cpu" or "cuda", not {device!r}; for others pass providers=[...].'
        )
    if "CUDAExecutionProvider" not in available:
        raise MissingBackendError("This onnxruntime cannot use CUDA: pip install onnxruntime-gpu in its place.")
    return [("CUDAExecutionProvider", {"device_id": int(index or 0)}), "CPUExecutionProvider"]


class OnnxSession:
    """One opened graph. Not to be called from two threads at once when buffers are bound.

    Attributes:
        spec: The component's border.
        arrays: `"numpy"`.
        engine: The `onnxruntime.InferenceSession`.
    """

    arrays = "numpy"

    def __init__(self, spec: ComponentSpec, engine: Any) -> None:
        import onnxruntime

        self.spec = spec
        self.engine = engine
        self._inputs = {tensor.name: tensor for tensor in spec.inputs}
        self._outputs = {tensor.name: tensor for tensor in spec.outputs}
        self._to_value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
        self._bound: _Bound | None = None

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the outputs.

        Args:
            feeds: numpy arrays by input name, of the spec's dtypes; read without a copy if they are C-contiguous.

        Returns:
            numpy arrays by output name, on ONNX Runtime's memory, which lives as long as they do.

        Raises:
            InputError: If ONNX Runtime cannot compute the graph on them, such as a token beyond the vocabulary.
        """
        arrays = {name: readable_array(array) for name, array in feeds.items()}  # hold the memory during the run
        values = {self._inputs[name].port: self._value(name, array) for name, array in arrays.items()}
        with self._refused():
            outputs = self.engine.run_with_ort_values([tensor.port for tensor in self.spec.outputs], values)
        return {tensor.name: array_of(value) for tensor, value in zip(self.spec.outputs, outputs, strict=True)}

    def run_bound(self, feeds: Mapping[str, Any], buffers: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the outputs while the state is updated in place: input and output of a state pair share one buffer.

        ONNX Runtime does not know that they do, so a graph must not read the old state after the new one is written.
        `spec.options["in_place"]` lists the inputs for which the lowering has proved that; where the list is absent,
        state above 4 KiB is taken as such (a cache), while smaller state (position counters, read all over the graph) is
        written to other memory and copied over at the end.

        Args:
            feeds: numpy arrays by name, for the inputs that are not in `buffers`.
            buffers: By name of a state input: a writeable C-contiguous numpy array, a torch tensor (CPU or CUDA) or an
                OrtValue, of the input's dtype. It holds the new state afterwards, at the same address. Held by the
                session until other buffers are passed.

        Returns:
            As `run`; a state output is its buffer itself.

        Raises:
            InputError: If a buffer belongs to no state pair, has another dtype, rank or size than its input, or the
                pair's shapes differ, so that one buffer cannot hold both.
        """
        bound = self._bind_state(buffers)
        binding = bound.binding
        arrays = {name: readable_array(array) for name, array in feeds.items()}
        for name, array in arrays.items():
            binding.bind_ortvalue_input(self._inputs[name].port, self._value(name, array))
        for tensor in self.spec.outputs:
            if tensor.name not in bound.in_place:
                # Anew each time: a binding hands out the memory of its last run otherwise.
                binding.bind_output(tensor.port, "cpu")
        with self._refused():
            self.engine.run_with_iobinding(binding)
        results = dict(zip((tensor.name for tensor in self.spec.outputs), binding.get_outputs(), strict=True))
        for name, buffer in bound.copied.items():
            buffer.overwrite(array_of(results[name]))
        state = {name: buffer.owner for name, buffer in (bound.in_place | bound.copied).items()}
        return {name: state[name] if name in state else array_of(value) for name, value in results.items()}

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # every class of ONNX Runtime's is one of its own, right below `Exception`
            said = str(error).rpartition("Status Message: ")[2].strip()
            raise InputError(f"ONNX Runtime cannot run {self.spec.name!r} on these inputs: {said}") from error

    def _value(self, name: str, array: Any) -> Any:
        return self._to_value(array, ELEMENT_TYPES[self._inputs[name].dtype])

    def _bind_state(self, buffers: Mapping[str, Any]) -> _Bound:
        """Bind the buffers; a loop that passes the same ones again pays for it once."""
        described = {name: describe_buffer(name, owner) for name, owner in buffers.items()}
        key = tuple((name, buffer.address, buffer.shape) for name, buffer in described.items())
        if self._bound is not None and self._bound.key == key:
            return self._bound
        bound = _Bound(key, self.engine.io_binding())
        pairs = dict(self.spec.state)
        safe = self.spec.options.get("in_place")
        for name, buffer in described.items():
            if name not in pairs:
                raise InputError(f"{name} is no state of {self.spec.name}; its state is {', '.join(pairs) or 'empty'}.")
            _check_buffer(self._inputs[name], self._outputs[pairs[name]], buffer)
            _bind(bound.binding.bind_input, self._inputs[name], buffer)
            aliased = name in safe if safe is not None else buffer.bytes > _SMALL_STATE
            (bound.in_place if aliased else bound.copied)[pairs[name]] = buffer
        for tensor in self.spec.outputs:  # in this order, so that the results come in it
            if tensor.name in bound.in_place:
                _bind(bound.binding.bind_output, tensor, bound.in_place[tensor.name])
            else:
                bound.binding.bind_output(tensor.port, "cpu")
        self._bound = bound
        return bound


class _Bound:
    """An IO binding and the state that it holds, by output name."""

    def __init__(self, key: tuple[Any, ...], binding: Any) -> None:
        self.key = key
        self.binding = binding
        self.in_place: dict[str, Buffer] = {}
        self.copied: dict[str, Buffer] = {}


def _bind(bind: Any, tensor: TensorSpec, buffer: Buffer) -> None:
    element = ELEMENT_TYPES[tensor.dtype]
    bind(tensor.port, buffer.device, buffer.device_id, element, buffer.shape, buffer.address)


def _check_buffer(source: TensorSpec, target: TensorSpec, buffer: Buffer) -> None:
    if source.shape != target.shape or source.dtype != target.dtype:
        raise InputError(
            f"{source.name} goes in as {source.dtype} {list(source.shape)} and comes out as {target.dtype} "
            f"{list(target.shape)}: it cannot stay in one buffer; export with a static cache."
        )
    fits = len(buffer.shape) == len(source.shape) and all(
        got == wanted or isinstance(wanted, str) for got, wanted in zip(buffer.shape, source.shape, strict=True)
    )
    if buffer.dtype != source.dtype or not fits:
        raise InputError(
            f"The buffer of {source.name} must be {source.dtype} {list(source.shape)}, got {buffer.dtype} "
            f"{list(buffer.shape)}."
        )
