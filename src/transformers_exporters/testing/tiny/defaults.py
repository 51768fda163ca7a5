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
    """The default; where its own check asks for numbers (`"x must be 0"`), with these, in itself or in one of its parts."""
    asked: dict[str, int] = {}
    while True:
        problems: list[Exception] = []
        for place in (None, *_parts_named(wanted)) if asked else (None,):
            try:
                return wanted(**(asked if place is None else {place: dict(asked)}))
            except Exception as problem:  # noqa: BLE001 -- the next place may be the right one
                problems.append(problem)
        more = {name: value for problem in problems for name, value in demanded(str(problem)).items()}
        if not set(more) - set(asked):
            raise problems[0]
        asked |= more


def _parts_named(wanted: type[PreTrainedConfig]) -> list[str]:
    """The fields that hold sub-configs, under either of the names that the library has for the table of them."""
    tables = (getattr(wanted, name, None) or {} for name in ("sub_configs", "sub_configs_defaults"))
    return list(dict.fromkeys(name for table in tables for name in table))


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
