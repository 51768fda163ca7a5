"""Which class of a model serves a task, by the names that the Hub and `pipeline` give to tasks."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError

#: transformers' own auto classes; the first that has a class for the model is taken.
TASKS: dict[str, tuple[str, ...]] = {
    "audio-classification": ("AutoModelForAudioClassification",),
    "audio-frame-classification": ("AutoModelForAudioFrameClassification",),
    "audio-xvector": ("AutoModelForAudioXVector",),
    "automatic-speech-recognition": ("AutoModelForSpeechSeq2Seq", "AutoModelForCTC"),
    "depth-estimation": ("AutoModelForDepthEstimation",),
    "document-question-answering": ("AutoModelForDocumentQuestionAnswering",),
    "feature-extraction": ("AutoModel",),
    "fill-mask": ("AutoModelForMaskedLM",),
    "image-classification": ("AutoModelForImageClassification",),
    "image-feature-extraction": ("AutoModel",),
    "image-segmentation": (
        "AutoModelForImageSegmentation",
        "AutoModelForUniversalSegmentation",
        "AutoModelForSemanticSegmentation",
        "AutoModelForInstanceSegmentation",
    ),
    "image-text-to-text": ("AutoModelForImageTextToText",),
    "image-to-image": ("AutoModelForImageToImage",),
    "keypoint-matching": ("AutoModelForKeypointMatching",),
    "mask-generation": ("AutoModelForMaskGeneration",),
    "multiple-choice": ("AutoModelForMultipleChoice",),
    "object-detection": ("AutoModelForObjectDetection",),
    "question-answering": ("AutoModelForQuestionAnswering",),
    "sentence-similarity": ("AutoModel",),
    "summarization": ("AutoModelForSeq2SeqLM",),
    "text-classification": ("AutoModelForSequenceClassification",),
    "text-generation": ("AutoModelForCausalLM",),
    "text-to-audio": ("AutoModelForTextToWaveform", "AutoModelForTextToSpectrogram"),
    "text2text-generation": ("AutoModelForSeq2SeqLM",),
    "token-classification": ("AutoModelForTokenClassification",),
    "translation": ("AutoModelForSeq2SeqLM",),
    "video-classification": ("AutoModelForVideoClassification",),
    "visual-question-answering": ("AutoModelForVisualQuestionAnswering",),
    "zero-shot-classification": ("AutoModelForSequenceClassification",),
    "zero-shot-image-classification": ("AutoModelForZeroShotImageClassification",),
    "zero-shot-object-detection": ("AutoModelForZeroShotObjectDetection",),
}


def check_task(task: str) -> None:
    """Raises `ConfigError` if there is no such task."""
    if task not in TASKS:
        raise ConfigError(f"There is no task {task!r}; the tasks are auto, forward, generation, {', '.join(TASKS)}.")


def class_for(task: str, config: Any) -> Any:
    """The class of a config's models that serves a task.

    Raises:
        ConfigError: If there is no such task, or transformers has no class for it.
    """
    import transformers

    check_task(task)
    for name in TASKS[task]:
        mapping = getattr(transformers, name)._model_mapping
        if type(config) in mapping:
            found = mapping[type(config)]
            choices = list(found) if isinstance(found, list | tuple) else [found]
            named = getattr(config, "architectures", None) or ()
            return next((choice for choice in choices if choice.__name__ in named), choices[0])
    raise ConfigError(f"transformers has no {config.model_type} model for {task!r}.")
