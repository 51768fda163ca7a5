"""The config that a tiny model is shrunk from: the default of its class, or what a larger model gives its part."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from transformers import PreTrainedConfig, ResNetConfig

from .amending import demanded
from .tree import configs_of


def defaults(wanted: type[PreTrainedConfig]) -> Iterator[PreTrainedConfig]:
    """The class's own default, then the parts of this class in the defaults of the configs of the same file.

    A part often has fields without a value of its own, which the model that it belongs to fills in.

    Raises:
        Exception: What the class raises, if neither it nor another config gives a default.
    """
    problem: Exception | None = None
    try:
        yield _without_timm(_own(wanted))
    except Exception as raised:  # noqa: BLE001 -- a class without a default says so in many ways
        problem = raised
    found = False
    for part in _parts(wanted):
        found = True
        yield _without_timm(part)
    if problem is not None and not found:
        raise problem


def _own(wanted: type[PreTrainedConfig]) -> PreTrainedConfig:
    """The default; where its own check asks for a number (`"x must be 0"`), with that number."""
    try:
        return wanted()
    except ValueError as problem:
        asked = demanded(str(problem))
        if not asked:
            raise
        for name, value in asked.items():
            part = next((at for at in _sub_configs(wanted) if name in vars(at[1])), None)
            if part is not None:
                return wanted(**{part[0]: {**part[1].to_dict(), name: value}})
        return wanted(**asked)


def _sub_configs(wanted: type[PreTrainedConfig]) -> Iterator[tuple[str, PreTrainedConfig]]:
    for name, part in getattr(wanted, "sub_configs", {}).items():
        if isinstance(part, type) and issubclass(part, PreTrainedConfig):
            with contextlib.suppress(Exception):
                yield name, part()


def _parts(wanted: type[PreTrainedConfig]) -> Iterator[PreTrainedConfig]:
    for whole in list(vars(sys.modules[wanted.__module__]).values()):
        if (
            not isinstance(whole, type)
            or not issubclass(whole, PreTrainedConfig)
            or whole in (wanted, PreTrainedConfig)
        ):
            continue
        with contextlib.suppress(Exception):  # a config that has no default gives none to its parts either
            yield from (part for part in configs_of(whole()) if type(part) is wanted)


def _without_timm(config: PreTrainedConfig) -> PreTrainedConfig:
    """The same config with a ResNet of transformers where the default is a backbone of the package timm."""
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            if value.model_type == "timm_backbone":
                stages = [index for index in getattr(value, "out_indices", None) or [4] if index > 0]
                setattr(config, name, ResNetConfig(out_indices=stages or [4]))
            else:
                _without_timm(value)
    return config
