"""Run a saved ExecuTorch program. Its Python runtime speaks torch tensors, so this run door imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch

from ...artifact.spec import ComponentSpec
from ...errors import ArtifactError, ConfigError

_PROGRAMS: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


class ExecutorchSession:
    """One loaded method; tensors in, tensors out.

    Inputs are read where they are and must stay alive during the call; outputs are the caller's own memory. An input
    that the model updates in place (a static cache) is updated in the very tensor that was passed in.
    """

    arrays = "torch"

    def __init__(self, spec: ComponentSpec, program: Any) -> None:
        self.spec = spec
        self._program = program  # kept, so that the other components of this artifact find it
        self._method = program.load_method(spec.name if spec.name in program.method_names else "forward")

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the outputs by name; see `runtime.session.Session.run`.

        Raises:
            ArtifactError: If the runtime refuses the call; its own reason is on stderr.
        """
        inputs = {tensor.name: _readable(feeds[tensor.name]) for tensor in self.spec.inputs}
        try:
            outputs = self._method.execute(list(inputs.values()))
        except RuntimeError as error:
            raise ArtifactError(f"ExecuTorch could not run {self.spec.name!r}: {error}") from error
        return self._named(feeds, inputs, list(outputs))

    def _named(
        self, feeds: Mapping[str, Any], inputs: Mapping[str, torch.Tensor], values: list[torch.Tensor]
    ) -> dict[str, Any]:
        """Outputs by name; see `borders.Results` for the runtime's order."""
        results = self.spec.options["results"]
        written = results["written"]
        for name in written:
            updated = inputs[name] if results["in_place"] else values.pop(0)
            if feeds[name].data_ptr() != updated.data_ptr():
                feeds[name].copy_(updated)
        named = {self.spec.outputs[place].name: value for place, value in zip(results["returned"], values, strict=True)}
        named |= {self.spec.outputs[int(place)].name: feeds[name] for place, name in results["same"].items()}
        return named


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    """The runtime takes dense row-major memory only."""
    return tensor.detach().contiguous()


def open_session(directory: Path, component: ComponentSpec, **options: Any) -> ExecutorchSession:
    """Open one component of a saved artifact.

    Args:
        directory: The artifact.
        component: The component, with `files` filled in.
        options: `device` (only "cpu"); the runtime has no others.

    Raises:
        ConfigError: If an option is unknown.
        ArtifactError: If the runtime cannot load the program: a kernel or a delegate that this build lacks.
    """
    if options.pop("device", "cpu") not in ("cpu", None) and component.options.get("backend") != "cuda":
        raise ConfigError("This program runs on the CPU: leave `device` out.")
    if options:
        raise ConfigError(f"ExecuTorch has no runtime option {sorted(options)[0]!r}.")
    if "executorch_kernels_quantized" in component.options.get("kernel_libraries", ()):
        import executorch.kernels.quantized  # noqa: F401 - registers its kernels in the runtime
    program_file, *data = (directory / file for file in component.files)
    try:
        return ExecutorchSession(component, _load_program(program_file, *data))
    except RuntimeError as error:
        missing = set(component.options.get("delegates", ())) - set(_delegates())
        reason = f"this build of executorch lacks {', '.join(sorted(missing))}" if missing else str(error)
        raise ArtifactError(f"ExecuTorch could not load {program_file.name}: {reason}.") from error


def _load_program(file: Path, data: Path | None = None) -> Any:
    """The program of a file, one for all components that are open.

    A program reserves the memory that its largest method plans, and touches it all; its methods share it. Loaded once a
    component, Idefics3 took 1.3 GB six times.
    """
    from executorch.runtime import Runtime

    files = [each.resolve() for each in (file, data) if each is not None]
    key = tuple((str(each), each.stat().st_ino, each.stat().st_mtime_ns) for each in files)
    program = _PROGRAMS.get(key)
    if program is None:
        program = Runtime.get().load_program(file, data_path=data)
        _PROGRAMS[key] = program
    return program


def _delegates() -> list[str]:
    from executorch.runtime import Runtime

    return list(Runtime.get().backend_registry.registered_backend_names)
