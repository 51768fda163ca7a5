"""Run a saved ExecuTorch program. Its Python runtime speaks torch tensors, so this run door imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...artifact.spec import ComponentSpec
from ...errors import ArtifactError, ConfigError


class ExecutorchSession:
    """One loaded method; tensors in, tensors out.

    Inputs are read where they are and must stay alive during the call; outputs are the caller's own memory. An input
    that the model updates in place (a static cache) is updated in the very tensor that was passed in.
    """

    arrays = "torch"

    def __init__(self, spec: ComponentSpec, method: Any) -> None:
        self.spec = spec
        self._method = method

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
    from executorch.runtime import Runtime

    if "executorch_kernels_quantized" in component.options.get("kernel_libraries", ()):
        import executorch.kernels.quantized  # noqa: F401 - registers its kernels in the runtime
    program_file, *data = component.files
    try:
        program = Runtime.get().load_program(directory / program_file, data_path=directory / data[0] if data else None)
        method = program.load_method(component.name if component.name in program.method_names else "forward")
    except RuntimeError as error:
        missing = set(component.options.get("delegates", ())) - set(_delegates())
        reason = f"this build of executorch lacks {', '.join(sorted(missing))}" if missing else str(error)
        raise ArtifactError(f"ExecuTorch could not load {program_file}: {reason}.") from error
    return ExecutorchSession(component, method)


def _delegates() -> list[str]:
    from executorch.runtime import Runtime

    return list(Runtime.get().backend_registry.registered_backend_names)
