"""What a quantizer is: a subclass of `Quantizer` that fills in one of its three hooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..artifact.spec import ComponentSpec
from ..doors import Requirement, find_backend, require
from ..errors import ConfigError
from ..runtime.feeds import check_feeds
from ..runtime.load import flatten_feeds
from ..runtime.torch_arrays import to_numpy
from ..trace.record import Traced

if TYPE_CHECKING:
    from ..backends.contract import Lowered


@dataclass(frozen=True)
class Calibration:
    """The inputs of one component that its value ranges are measured with.

    Attributes:
        kwargs: Forward kwargs, nested as the component's module takes them: torch tensors, caches, flags.
    """

    kwargs: Sequence[Mapping[str, Any]]

    def feeds(self, spec: ComponentSpec) -> Iterator[dict[str, torch.Tensor]]:
        """The same as tensors by input name, checked against the component's border."""
        for kwargs in self.kwargs:
            yield check_feeds(spec, flatten_feeds(spec, kwargs))

    def arrays(self, spec: ComponentSpec) -> Iterator[dict[str, Any]]:
        """The same as numpy arrays, under the backend's own input names."""
        ports = {tensor.name: tensor.port for tensor in spec.inputs}
        for feed in self.feeds(spec):
            yield {ports[name]: to_numpy(value) for name, value in feed.items()}


@dataclass(kw_only=True)
class Quantizer:
    """Base of all quantizers. A subclass is a keyword-only dataclass whose fields are its options.

    Each hook does nothing by default; a quantizer fills in the one whose form it works on. They are called in this order:
    `quantize_model` once around the export, then `quantize_program` and `quantize_lowered` for every component.

    Attributes:
        formats: The export formats that it supports; the config refuses others when it is made.
        requires: The packages that it needs, by distribution name.
        calibration_dataset: Inputs to measure value ranges with: dicts of forward kwargs, or of generate kwargs for an
            export for generation (the kwargs of each component are then captured from one step of `generate`). A
            `DataLoader` will do. None: the inputs that the model is exported with, and a warning.
    """

    formats: ClassVar[tuple[str, ...]] = ()
    requires: ClassVar[Mapping[str, Requirement]] = {}

    calibration_dataset: Iterable[Mapping[str, Any]] | None = None

    @property
    def calibrates(self) -> bool:
        """Whether it measures value ranges: only then is `calibration_dataset` read."""
        return False

    def check(self, export_format: str) -> None:
        """Refuse what cannot work, before anything is exported.

        Raises:
            ConfigError: If the format is not supported; names what is.
            MissingBackendError: If a package is missing or too old.
        """
        if export_format not in self.formats:
            raise ConfigError(
                f"{type(self).__name__} does not quantize the format {export_format!r}; it supports "
                f"{', '.join(self.formats)}. For {export_format} use {_alternatives(export_format)}."
            )
        require(self.requires, type(self).__name__, extra="quantize")

    def quantize_model(self, model: torch.nn.Module) -> AbstractContextManager[None]:
        """Quantize the module's weights while the context is open; they are what they were afterwards."""
        return nullcontext()

    def quantize_program(self, traced: Traced, calibration: Calibration, export_format: str) -> Traced:
        """Quantize a traced and repaired FX graph that is about to be lowered to a format. Must not change `traced`."""
        return traced

    def quantize_lowered(self, lowered: Lowered, calibration: Calibration) -> Lowered:
        """Quantize the backend's own model (`ONNXProgram`, `openvino.Model`)."""
        return lowered

    def to_dict(self) -> dict[str, Any]:
        """`{"type": class name, option: value}`, JSON-ready; the calibration data is left out."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "calibration_dataset"}
        return {"type": type(self).__name__, **{name: _as_json(value) for name, value in fields.items()}}


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _alternatives(export_format: str) -> str:
    from .recipes import quantizers_for

    find_backend(export_format)
    names = quantizers_for(export_format)
    return " or ".join(names) if names else "no quantizer: this package has none for it"
