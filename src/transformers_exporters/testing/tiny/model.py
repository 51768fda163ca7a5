"""A tiny random-weight model of any architecture that transformers registers, with inputs: no weights, no network."""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from ...errors import UnsupportedModelError
from .amending import TooLargeError, amended
from .classes import config_class, model_classes
from .complaint import complaint_of
from .config import Path, shrink
from .defaults import defaults
from .inputs import working_inputs
from .plan import LADDER, MENDED
from .tree import configs_of, layers_of

#: A model above this is not tiny any more; the ladder goes on.
_MOST_PARAMETERS = 40_000_000
#: With more layers than this the last step of the ladder, which keeps them all, is left out.
_MOST_LAYERS = 16
#: Changed configs tried for one class and plan.
_MOST_AMENDED = 16
#: How many of the largest parameters say which sizes to cut.
_LARGEST = 4
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
    problem: Exception | None = None
    with _quiet(), torch.random.fork_rng(devices=[]):
        starts = _defaults(config_class(model_type), model_type)
        for search in (_climbed, _amended):
            for default in starts:
                for model_class in _classes(default, task):
                    if search is _amended and model_class.config_class is not type(default):
                        continue  # it wants a part of the config, and would ask for one field of it after the other
                    found = search(model_class, default, seed)
                    if not isinstance(found, Exception):
                        return found
                    problem = problem or found
    reason = f"{type(problem).__name__}: {_line(problem)}" if problem else "transformers has no model class for it"
    raise UnsupportedModelError(f"No tiny {model_type} can be built ({reason}): export a checkpoint of it instead.")


def _climbed(
    model_class: type[PreTrainedModel], default: PreTrainedConfig, seed: int
) -> tuple[PreTrainedModel, dict[str, Any]] | Exception:
    """The model of the first plan of the ladder that builds and runs; else the first complaint."""
    first: Exception | None = None
    reasons: list[str] = []
    for plan in LADDER if _layers(default) <= _MOST_LAYERS else LADDER[:-1]:
        if plan.layers and any(reasons.count(reason) > 2 for reason in reasons):
            continue  # the same complaint at three scales, without a number in it, is not about widths
        try:
            return _tried(model_class, shrink(default, plan), seed)
        except Exception as raised:  # noqa: BLE001 -- whatever the model's code raises asks for the next plan
            raised.__traceback__ = None
            first = first or raised
            if not re.search(r"\b\d+\b", str(raised)):
                reasons.append(str(raised))
    return first or ValueError("no plan fits it")


def _amended(
    model_class: type[PreTrainedModel], default: PreTrainedConfig, seed: int
) -> tuple[PreTrainedModel, dict[str, Any]] | Exception:
    """The model of a plan whose fields are changed one after the other, after what the model's code complains about.

    Depth first; a change counts when the code complains about something that it did not complain about before.
    """
    first: Exception | None = None
    for plan in MENDED:
        seen: set[str] = set()
        waiting: list[Iterator[dict[Path, Any]]] = [iter([{}])]
        for _ in range(_MOST_AMENDED):
            while waiting and (fixed := next(waiting[-1], None)) is None:
                waiting.pop()
            if not waiting or fixed is None:
                break
            try:
                return _tried(model_class, shrink(default, plan, fixed), seed)
            except Exception as raised:  # noqa: BLE001 -- as above
                heard = complaint_of(raised)
                if heard.message not in seen:
                    seen.add(heard.message)
                    waiting.append(amended(default, plan, fixed, raised, heard))
                raised.__traceback__ = None
                first = first or raised
    return first or ValueError("no plan fits it")


def _tried(
    model_class: type[PreTrainedModel], config: PreTrainedConfig, seed: int
) -> tuple[PreTrainedModel, dict[str, Any]]:
    model = _build(model_class, config, seed)
    return model, working_inputs(model)


def _classes(config: PreTrainedConfig, task: str | None) -> list[type[PreTrainedModel]]:
    try:
        classes = list(model_classes(config, task))
    except ImportError as problem:
        raise UnsupportedModelError(
            f"No tiny {config.model_type} can be built ({_line(problem)}): install the package that its code needs."
        ) from problem
    running = [found for found in classes if found.forward is not torch.nn.Module.forward]
    if classes and not running:
        raise UnsupportedModelError(
            f"No tiny {config.model_type} can be built: {classes[0].__name__} has no forward. Export one of its parts."
        )
    return running[:_MOST_CLASSES]


def _defaults(wanted: type[PreTrainedConfig], model_type: str) -> list[PreTrainedConfig]:
    try:
        return list(defaults(wanted))
    except Exception as problem:
        raise UnsupportedModelError(
            f"No tiny {model_type} can be built: {wanted.__name__} has no default ({_line(problem)})."
        ) from problem


def _build(model_class: type[PreTrainedModel], config: PreTrainedConfig, seed: int) -> PreTrainedModel:
    for part in configs_of(config):
        part.dtype = None
    shapes = _shapes_of(model_class, config)
    count = sum(map(math.prod, shapes))
    if count > _MOST_PARAMETERS:
        largest = sorted(shapes, key=math.prod, reverse=True)[:_LARGEST]
        raise TooLargeError(count, tuple(dict.fromkeys(axis for shape in largest for axis in shape)))
    torch.manual_seed(seed)
    model = model_class(config).float().eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in filter(_is_unwritten, model.state_dict().values()):
            weight.normal_(0.0, 0.02)
    return model


def _is_unwritten(weight: torch.Tensor) -> bool:
    """Whether it is memory that no initialiser has written, or zeros: nothing can be seen to go wrong behind them."""
    if not weight.is_floating_point():
        return False
    return not bool((weight.abs() < 1e4).all()) or (weight.numel() > 1 and not bool(weight.any()))


def _shapes_of(model_class: type[PreTrainedModel], config: PreTrainedConfig) -> list[tuple[int, ...]]:
    """The shapes of the parameters without allocating them; none where the model computes on buffers, which meta cannot."""
    try:
        with torch.device("meta"):
            return [tuple(parameter.shape) for parameter in model_class(config).parameters()]
    except Exception:  # noqa: BLE001 -- the build that follows says what is wrong, if anything is
        return []


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
