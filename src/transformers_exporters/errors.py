"""The errors that this package raises. Every message is one sentence that says what to do."""

from __future__ import annotations

__all__ = [
    "ArtifactError",
    "ConfigError",
    "ExportError",
    "FrozenAxisError",
    "InputError",
    "LoweringError",
    "MissingBackendError",
    "TraceError",
    "UnsupportedModelError",
    "VerificationError",
    "WorkaroundError",
]


class ExportError(Exception):
    """Base of every error of this package."""


class ConfigError(ExportError, ValueError):
    """A config field is unknown, has a wrong value, or belongs to another backend."""


class InputError(ExportError, ValueError):
    """An input is missing, unexpected, or of the wrong dtype, rank or size."""


class MissingBackendError(ExportError, ImportError):
    """A backend's package is not installed, or is older than the backend's minimum."""


class UnsupportedModelError(ExportError):
    """The model or the request cannot be exported at all (for example: a loss computation)."""


class TraceError(ExportError):
    """`torch.export` could not trace a component; names the component and the model source line."""


class FrozenAxisError(TraceError):
    """An axis that was asked for as dynamic came out constant."""


class LoweringError(ExportError):
    """A backend could not translate the traced graph; names the op and the model source line."""


class ArtifactError(ExportError):
    """An artifact on disk is missing, truncated, edited, unsafe, or of a newer schema."""


class VerificationError(ExportError, AssertionError):
    """The artifact does not compute what the model computes."""


class WorkaroundError(ExportError):
    """A workaround's target is missing, or two workarounds claim the same target."""
