"""Build a model over a checkpoint's files without reading its weights.

Every parameter and saved buffer is a view of the memory-mapped `.safetensors` file, so a model takes memory only for the
pages that an eager run touches; an export touches none and hands on where each weight lies.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..artifact.weights import CheckpointRef, read_safetensors_index
from ..errors import ArtifactError, InputError
from .adapters import adapter_config, base_of, merge
from .placeholders import compute_buffers
from .references import mapped, remember
from .sentences import read_sentences, text_class, with_sentence_embedding
from .tasks import class_for

logger = logging.getLogger(__name__)

#: Tasks of a sentence-transformers checkpoint (None: none is given).
_OF_SENTENCES = (None, "feature-extraction", "sentence-similarity")


def load_checkpoint(
    checkpoint: Path | str,
    *,
    dtype: str | torch.dtype | None = None,
    trust_remote_code: bool = False,
    gguf_file: str | None = None,
    task: str | None = None,
    model_class: Any = None,
) -> Any:
    """A `PreTrainedModel` in eval mode, its weights mapped from the checkpoint wherever its files allow it.

    Files that must be converted (GGUF, pickled `.bin`, another dtype than the checkpoint's, tensors that this version of
    transformers splits or merges) are loaded by `from_pretrained` as usual, which needs memory for the weights. So are
    adapters, which are merged into the weights of their base. A checkpoint of sentence-transformers comes with
    its pooling and what follows: the model returns a `sentence_embedding` too, unless a class or another task is given.

    Args:
        checkpoint: A checkpoint directory, or a hub id.
        dtype: Load in this dtype; None keeps the checkpoint's.
        trust_remote_code: Whether to run modelling code that the checkpoint brings.
        gguf_file: Name of a GGUF file in the checkpoint.
        task: What the model is for (`"fill-mask"`), which chooses its class; None for the class that the config names.
        model_class: That class itself.

    Raises:
        InputError: If the checkpoint has no readable config, or names a class that transformers does not have.
        ConfigError: If there is no such task, or the model has no class for it.
    """
    from transformers import AutoConfig

    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    adapter = adapter_config(checkpoint)
    source = checkpoint if adapter is None else base_of(checkpoint, adapter)
    try:
        options = {} if gguf_file is None else {"gguf_file": gguf_file}
        config = AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code, **options)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{source} is not a checkpoint that transformers can read: {str(error).rstrip('.')}."
        ) from error
    sentences = None
    if model_class is None and adapter is None and task in _OF_SENTENCES:
        sentences = read_sentences(source)
    if sentences is not None and not hasattr(config, "auto_map"):
        model_class = text_class(config)
    cls = model_class or (_model_class(config, source, trust_remote_code) if task is None else class_for(task, config))
    model = _load(cls, config, checkpoint, source, adapter, dtype, trust_remote_code, options)
    return model if sentences is None else with_sentence_embedding(model, sentences)


def _load(
    cls: Any,
    config: Any,
    checkpoint: Path | str,
    source: Path | str,
    adapter: Any,
    dtype: torch.dtype | None,
    trust_remote_code: bool,
    options: Mapping[str, Any],
) -> Any:
    """A model of the class, mapped if the files allow it."""
    gguf_file = options.get("gguf_file")
    directory = Path(source)
    mappable = gguf_file is None and adapter is None and getattr(config, "quantization_config", None) is None
    if mappable and directory.is_dir():
        model = _map_checkpoint(cls, config, directory, dtype)
        if model is not None:
            return model
    kwargs: dict[str, Any] = {**options, "dtype": dtype if dtype is not None else "auto"}
    if getattr(cls, "_auto_class", None) is not None or trust_remote_code:
        kwargs["trust_remote_code"] = trust_remote_code
    model, found = cls.from_pretrained(source, output_loading_info=True, **kwargs)
    _report(source, model, found)
    if gguf_file is not None:
        _forget_gguf(model)
    if adapter is not None:
        model = merge(model, checkpoint)
    return model.eval()


def _report(checkpoint: Path | str, model: Any, found: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that holds nothing of the model; warn of weights that were made up, and of those left out."""
    name = type(model).__name__
    missing = sorted(found["missing_keys"])
    if missing and len(missing) >= len(_needed(model)):
        raise InputError(
            f"{checkpoint} holds no weight of a {name} under its name ({missing[0]} is the first that is missing): give the "
            "checkpoint that transformers' save_pretrained wrote."
        )
    if missing:
        warnings.warn(
            f"{checkpoint} does not hold {_some(missing)} of {name}: these weights are random numbers now.",
            stacklevel=2,
        )
    left_out = sorted(found["unexpected_keys"])
    if left_out and name not in (getattr(model.config, "architectures", None) or ()):
        warnings.warn(f"{name} has no place for {_some(left_out)} of {checkpoint}: left out.", stacklevel=2)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _forget_gguf(model: Any) -> None:
    """A GGUF file's weights are dequantized when they are loaded; without its marks the model is an ordinary one."""
    for owner, names in (
        (model, ("hf_quantizer", "quantization_method", "is_quantized")),
        (model.config, ("quantization_config",)),
    ):
        for name in names:
            vars(owner).pop(name, None)


def _model_class(config: Any, checkpoint: Path | str, trust_remote_code: bool) -> Any:
    import transformers

    for name in config.architectures or ():
        cls = getattr(transformers, name, None)
        if cls is not None:
            return cls
    auto_map = getattr(config, "auto_map", None) or {}
    for name in ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModel"):
        if name in auto_map and trust_remote_code:
            return getattr(transformers, name)
    if config.architectures:
        raise InputError(
            f"{checkpoint} is a {config.architectures[0]}, which transformers does not have: choose a class of its own by a "
            "task (--task), or allow the checkpoint's code (--trust-remote-code)."
        )
    # A GGUF file names no architecture: it holds a language model. (BERT has a class for causal language too.)
    causal, masked = transformers.MODEL_FOR_CAUSAL_LM_MAPPING, transformers.MODEL_FOR_MASKED_LM_MAPPING
    return causal[type(config)] if type(config) in causal and type(config) not in masked else transformers.AutoModel


def _map_checkpoint(cls: Any, config: Any, directory: Path, dtype: torch.dtype | None) -> Any:
    """The model over mapped files, or None where the files need a conversion."""
    index = _index(directory)
    if index is None or not hasattr(cls, "_from_config") or not isinstance(cls, type):
        return None
    from transformers import initialization
    from transformers.modeling_utils import local_torch_dtype

    wanted = dtype or getattr(config, "dtype", None) or _common_dtype(index)
    with local_torch_dtype(wanted, cls.__name__), torch.device("meta"), initialization.meta_device_safe_creation_ops():
        model = cls(config)
    model.tie_weights()
    sources = _rename(model, index)
    if sources is None:
        return None
    missing = [name for name in _needed(model) if name not in sources]
    missing += [name for name, tensor in model.state_dict().items() if _other_shape(sources.get(name), tensor)]
    if missing:
        logger.info("%s: %s is not stored as the model has it; loading with from_pretrained", directory, missing[0])
        return None
    _report(directory, model, {"missing_keys": (), "unexpected_keys": sources.keys() - model.state_dict().keys()})
    _fill(model, sources)
    for name, buffer in list(model.named_buffers()):
        if buffer.device.type == "meta":
            owner, _, leaf = name.rpartition(".")
            model.get_submodule(owner)._buffers[leaf] = torch.zeros_like(buffer, device="cpu")
    compute_buffers(model)
    model.config.name_or_path = str(directory)
    if (directory / "generation_config.json").is_file() and model.can_generate():
        from transformers import GenerationConfig

        model.generation_config = GenerationConfig.from_pretrained(directory)
    return model.eval()


def _index(directory: Path) -> dict[str, CheckpointRef] | None:
    single, sharded = directory / "model.safetensors", directory / "model.safetensors.index.json"
    try:
        if single.is_file():
            return read_safetensors_index(single)
        if sharded.is_file():
            shards = sorted(set(json.loads(sharded.read_text(encoding="utf-8"))["weight_map"].values()))
            return {key: ref for shard in shards for key, ref in read_safetensors_index(directory / shard).items()}
    except ArtifactError as error:
        raise InputError(f"The checkpoint's weights cannot be read: {error}") from error
    return None


def _common_dtype(index: Mapping[str, CheckpointRef]) -> torch.dtype:
    floating = [ref.dtype for ref in index.values() if "float" in ref.dtype]
    return getattr(torch, max(set(floating), key=floating.count)) if floating else torch.float32


def _rename(model: Any, index: Mapping[str, CheckpointRef]) -> dict[str, CheckpointRef] | None:
    """References by the model's own names, or None where a tensor must be split, merged or transposed."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

    transforms = get_model_conversion_mapping(model)
    renamings = [item for item in transforms if isinstance(item, WeightRenaming)]
    converters = [item for item in transforms if isinstance(item, WeightConverter)]
    state = model.state_dict()
    sources: dict[str, CheckpointRef] = {}
    for key, ref in index.items():
        name, converter = rename_source_key(key, renamings, converters, model.base_model_prefix, state)
        if converter is not None:
            logger.info("%s needs the conversion %s; loading with from_pretrained", key, converter)
            return None
        sources[name] = ref
    return sources


def _needed(model: Any) -> list[str]:
    """Names of the parameters and saved buffers, one name for tied ones."""
    tied = set(getattr(model, "all_tied_weights_keys", {}) or {})
    names = []
    for name, tensor in model.state_dict(keep_vars=True).items():
        if name not in tied and not name.endswith("num_batches_tracked"):
            names.append(name)
        del tensor
    return names


def _other_shape(reference: CheckpointRef | None, tensor: torch.Tensor) -> bool:
    return reference is not None and tuple(reference.shape) != tuple(tensor.shape)


def _fill(model: torch.nn.Module, sources: Mapping[str, CheckpointRef]) -> None:
    done: dict[int, torch.Tensor] = {}
    own = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    stored = {id(tensor): sources[name] for name, tensor in own.items() if name in sources}
    for name, tensor in own.items():
        if tensor.device.type != "meta" or id(tensor) not in stored:
            continue
        if id(tensor) not in done:
            done[id(tensor)] = _tensor(stored[id(tensor)], tensor)
        owner, _, leaf = name.rpartition(".")
        module = model.get_submodule(owner)
        (module._parameters if leaf in module._parameters else module._buffers)[leaf] = done[id(tensor)]  # type: ignore[assignment]


def _tensor(reference: CheckpointRef, like: torch.Tensor) -> torch.Tensor:
    values = mapped(reference)
    exact = values.dtype == like.dtype
    if not exact:  # a module that the model keeps in another precision
        values = values.to(like.dtype)
    if isinstance(like, torch.nn.Parameter):
        values = torch.nn.Parameter(values, requires_grad=False)
    values._is_hf_initialized = True  # type: ignore[attr-defined]
    if exact:
        remember(values, reference)
    return values
