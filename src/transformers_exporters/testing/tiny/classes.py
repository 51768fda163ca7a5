"""From a model type to its default config and to the model classes that take it, the most telling one first."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
from collections.abc import Iterator
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from ...errors import InputError

#: Heads in the order of preference; what is not named comes after, in the library's order, and the bare model last.
_PREFERRED = (
    "IMAGE_TEXT_TO_TEXT",
    "SEQ_TO_SEQ_CAUSAL_LM",
    "SPEECH_SEQ_2_SEQ",
    "MASKED_LM",
    "CAUSAL_LM",
    "MULTIMODAL_LM",
    "ZERO_SHOT_IMAGE_CLASSIFICATION",
    "OBJECT_DETECTION",
    "UNIVERSAL_SEGMENTATION",
    "SEMANTIC_SEGMENTATION",
    "IMAGE_CLASSIFICATION",
    "CTC",
)
_LAST = ("BACKBONE", "IMAGE", "PRETRAINING", "TEXT_ENCODING", "MULTIPLE_CHOICE")
_NAME = re.compile(r"^MODEL_FOR_(\w+)_MAPPING_NAMES$")


def config_class(model_type: str) -> type[PreTrainedConfig]:
    """The config class that transformers registers for the type.

    Raises:
        InputError: If there is none; names the closest types.
    """
    known = {name.replace("-", "_"): name for name in CONFIG_MAPPING_NAMES}
    if model_type in CONFIG_MAPPING_NAMES:
        return CONFIG_MAPPING[model_type]
    if model_type.replace("-", "_") in known:
        return CONFIG_MAPPING[known[model_type.replace("-", "_")]]
    near = difflib.get_close_matches(model_type.lower(), CONFIG_MAPPING_NAMES, n=4, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "see CONFIG_MAPPING of transformers for the names."
    raise InputError(f"transformers knows no model type {model_type!r}: {hint}")


def model_classes(config: PreTrainedConfig, task: str | None) -> Iterator[type[PreTrainedModel]]:
    """The classes that take `config`, best first; with a task, only the class for that head.

    Args:
        config: A config whose class is registered.
        task: None, `"base"`, or a head in the words of the auto classes: `"causal-lm"`, `"image-classification"`.

    Raises:
        InputError: If the task is unknown or the type has no model for it.
    """
    mappings = _mappings()
    if task is not None:
        head = "" if task == "base" else task.upper().replace("-", "_")
        names = mappings.get(head, {}).get(config.model_type)
        if names is None:
            having = sorted(
                name.lower().replace("_", "-") or "base" for name in mappings if config.model_type in mappings[name]
            )
            raise InputError(f"{config.model_type} has no model for the task {task!r}: use one of {', '.join(having)}.")
        yield from _loaded(config, [names])
        return
    ranked = sorted(mappings, key=_rank)
    seen: set[str] = set()
    for found in _loaded(
        config, [mappings[head][config.model_type] for head in ranked if config.model_type in mappings[head]]
    ):
        if found.__name__ not in seen:
            seen.add(found.__name__)
            yield found
    for found in _siblings(config):
        if found.__name__ not in seen:
            yield found


def _mappings() -> dict[str, dict[str, Any]]:
    """Head (`"CAUSAL_LM"`; `""` for the bare model) to model type to class name or names."""
    heads = {found[1]: getattr(modeling_auto, name) for name in dir(modeling_auto) if (found := _NAME.match(name))}
    return {**heads, "": modeling_auto.MODEL_MAPPING_NAMES}


def _rank(head: str) -> int:
    if head in _PREFERRED:
        return _PREFERRED.index(head)
    return 100 if head == "" else 200 if head in _LAST else 50


def _modules(config: PreTrainedConfig) -> list[Any]:
    """The modeling modules beside the module that defines the config."""
    module = type(config).__module__
    candidates = dict.fromkeys((module.replace(".configuration_", ".modeling_"), module))
    return [importlib.import_module(name) for name in candidates if importlib.util.find_spec(name)]


def _loaded(config: PreTrainedConfig, names: list[Any]) -> Iterator[type[PreTrainedModel]]:
    import transformers

    for name in names:
        for one in [name] if isinstance(name, str) else name:
            for place in (transformers, *_modules(config)):
                found = getattr(place, one, None)
                if isinstance(found, type) and issubclass(found, PreTrainedModel):
                    yield found
                    break


def _siblings(config: PreTrainedConfig) -> list[type[PreTrainedModel]]:
    """Models of the same file that name this config class, those with a head first; for parts that no auto class maps."""
    found = {
        value.__name__: value
        for module in _modules(config)
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, PreTrainedModel)
        and getattr(value, "config_class", None) is type(config)
        and not re.search(r"Pre[Tt]rainedModel", value.__name__)
    }
    return sorted(found.values(), key=lambda value: ("For" not in value.__name__, not value.__name__.endswith("Model")))
