"""What the quantizers that hand a whole model to NNCF share: their options, and the calls."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from ..doors import Requirement
from ..errors import ConfigError
from ..quiet import quiet as quiet_log
from .contract import Quantizer

_MODES = ("int8", "int4", "static")


@dataclass(kw_only=True)
class NNCFQuantizer(Quantizer):
    """Base of the quantizers of a backend's own model with NNCF; a subclass has the defaults and says what they do there.

    Attributes:
        mode: `int8` and `int4` compress weights; `static` quantizes weights and activations with ranges measured on the
            calibration data.
        group_size: Values along a weight's input axis that share a scale. `int4`.
        symmetric: No zero points. `int8`, `int4`.
        ratio: The part of the weights that gets 4 bits; the others keep 8. `int4`.
        model_type: `transformer` keeps the ops that attention is sensitive in as they are; None does not. `static`.
    """

    requires: ClassVar[Mapping[str, Requirement]] = {"nncf": Requirement("3.2", "3.4.0")}

    mode: str = "int8"
    group_size: int = 32
    symmetric: bool = False
    ratio: float = 1.0
    model_type: str | None = "transformer"

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ConfigError(f"{type(self).__name__}.mode must be one of {', '.join(_MODES)}, got {self.mode!r}.")
        if self.model_type not in ("transformer", None):
            raise ConfigError(f"model_type must be 'transformer' or None, got {self.model_type!r}.")

    @property
    def calibrates(self) -> bool:
        return self.mode == "static"

    def compressed(self, model: Any, ignored: Any = None) -> Any:
        """The model with its weights compressed as the options say, but for those in the `nncf.IgnoredScope`."""
        import nncf

        kinds = nncf.CompressWeightsMode
        with quiet():
            if self.mode == "int8":
                return nncf.compress_weights(model, mode=kinds.INT8_SYM if self.symmetric else kinds.INT8_ASYM)
            return nncf.compress_weights(
                model,
                mode=kinds.INT4_SYM if self.symmetric else kinds.INT4_ASYM,
                group_size=self.group_size,
                ratio=self.ratio,
                ignored_scope=ignored,
            )

    def measured(self, model: Any, feeds: Sequence[Mapping[str, Any]]) -> Any:
        """The model with weights and activations in 8 bits, their ranges measured on numpy arrays by input port."""
        import nncf

        with quiet():
            return nncf.quantize(
                model,
                nncf.Dataset(feeds),
                subset_size=len(feeds),
                model_type=nncf.ModelType.TRANSFORMER if self.model_type else None,
            )


def quiet(level: int = logging.WARNING) -> AbstractContextManager[None]:
    """NNCF logs tables of its decisions and draws progress bars on stdout."""
    import nncf  # noqa: F401 - sets its logger's level when it is imported

    return quiet_log("nncf", level)
