"""A tiny random-weight model of any architecture that transformers registers, with inputs: no weights, no network."""

from __future__ import annotations

import contextlib
import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel, ResNetConfig
from transformers.utils import logging as transformers_logging

from ...errors import UnsupportedModelError
from .classes import config_class, model_classes
from .config import shrink
from .inputs import working_inputs
from .plan import LADDER
from .tree import configs_of, layers_of

#: A model above this is not tiny any more; the ladder goes on.
_MOST_PARAMETERS = 40_000_000
#: With more layers than this the last step of the ladder, which keeps them all, is left out.
_MOST_LAYERS = 16
#: Classes tried for one type, the preferred head first.
_MOST_CLASSES = 3


def tiny_model(model_type: str, *, task: str | None = None, seed: int = 0) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A tiny model of an architecture, made by shrinking its default config, and keywords that its forward takes.

    The model is on the CPU, in float32 and eval mode, with random weights. Its forward ran once with the inputs. The same
    seed gives the same weights and inputs. The global random state is left as it was.

    Args:
        model_type: The name that transformers registers: `"llama"`, `"qwen3_vl"`.
        task: None for the most telling head; else a head in the words of the auto classes (`"causal-lm"`,
            `"image-classification"`) or `"base"` for the model without a head.
        seed: For weights and inputs.

    Raises:
        InputError: If the type or the task is unknown; names the closest.
        UnsupportedModelError: If no model of the type can be built and run; says why.
    """
    wanted = config_class(model_type)
    problem: Exception | None = None
    with _quiet(), torch.random.fork_rng(devices=[]):
        default = _default(wanted, model_type)
        for model_class in _classes(default, task):
            reasons: list[str] = []
            for plan in LADDER if _layers(default) <= _MOST_LAYERS else LADDER[:-1]:
                if plan.layers and any(reasons.count(reason) > 2 for reason in reasons):
                    continue  # the same complaint at three scales, without a number in it, is not about widths
                try:
                    model = _build(model_class, shrink(default, plan), seed)
                    return model, working_inputs(model)
                except Exception as raised:  # noqa: BLE001 -- whatever the model's code raises asks for the next plan
                    raised.__traceback__ = None
                    problem = problem or raised
                    if not re.search(r"\b\d+\b", str(raised)):
                        reasons.append(str(raised))
    reason = f"{type(problem).__name__}: {_line(problem)}" if problem else "transformers has no model class for it"
    raise UnsupportedModelError(f"No tiny {model_type} can be built ({reason}): export a checkpoint of it instead.")


def _classes(config: PreTrainedConfig, task: str | None) -> list[type[PreTrainedModel]]:
    try:
        return list(itertools.islice(model_classes(config, task), _MOST_CLASSES))
    except ImportError as problem:
        raise UnsupportedModelError(
            f"No tiny {config.model_type} can be built ({_line(problem)}): install the package that its code needs."
        ) from problem


def _default(wanted: type[PreTrainedConfig], model_type: str) -> PreTrainedConfig:
    try:
        return _without_timm(wanted())
    except Exception as problem:
        raise UnsupportedModelError(
            f"No tiny {model_type} can be built: {wanted.__name__} has no default ({_line(problem)})."
        ) from problem


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


def _build(model_class: type[PreTrainedModel], config: PreTrainedConfig, seed: int) -> PreTrainedModel:
    for part in configs_of(config):
        part.dtype = None
    count = _parameters_of(model_class, config)
    if count > _MOST_PARAMETERS:
        raise ValueError(f"it still has {count / 1e6:.0f} million parameters after shrinking")
    torch.manual_seed(seed)
    model = model_class(config).float().eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            # Memory that no initialiser of the model has written.
            if parameter.is_floating_point() and not bool((parameter.abs() < 1e4).all()):
                parameter.normal_(0.0, 0.02)
    return model


def _parameters_of(model_class: type[PreTrainedModel], config: PreTrainedConfig) -> int:
    """The number of parameters without allocating them; 0 where the model computes on buffers, which meta cannot."""
    try:
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in model_class(config).parameters())
    except Exception:  # noqa: BLE001 -- the build that follows says what is wrong, if anything is
        return 0


def _layers(config: PreTrainedConfig) -> int:
    return max(layers_of(part) for part in configs_of(config))


def _line(problem: Exception) -> str:
    """The message on one line; its first two lines, as validators put the reason into the second."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()] or [type(problem).__name__]
    return " ".join(lines[:2])[:240].rstrip(".")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the complaints of the default configs, which are nothing that the user did."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(before)
