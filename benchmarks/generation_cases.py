"""Which models the generation table holds, by kind, and which cases are skipped, with the reason."""

from __future__ import annotations

# Entries of the model directory. A kind is a way in which `generate` works, or in which a model keeps its state.
KINDS: dict[str, tuple[str, ...]] = {
    "dense": ("LlamaForCausalLM", "GPT2LMHeadModel", "BloomForCausalLM", "SmolLM3ForCausalLM"),
    "mixture of experts": ("MixtralForCausalLM", "Qwen3MoeForCausalLM", "GptOssForCausalLM"),
    "sliding window": ("MistralForCausalLM", "Gemma3ForCausalLM"),
    "latent attention": ("DeepseekV3ForCausalLM",),
    "state space": ("MambaForCausalLM", "Mamba2ForCausalLM", "FalconMambaForCausalLM", "xLSTMForCausalLM"),
    "hybrid": (
        "JambaForCausalLM",
        "Qwen3NextForCausalLM",
        "Lfm2ForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "RwkvForCausalLM",
        "RecurrentGemmaForCausalLM",
    ),
    "encoder-decoder": (
        "T5ForConditionalGeneration",
        "BartForConditionalGeneration",
        "MarianMTModel",
        "WhisperForConditionalGeneration",
        "MoonshineForConditionalGeneration",
        "Speech2TextForConditionalGeneration",
    ),
    "image": (
        "LlavaForConditionalGeneration",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Idefics3ForConditionalGeneration",
        "SmolVLMForConditionalGeneration",
        "Gemma3ForConditionalGeneration",
        "PaliGemmaForConditionalGeneration",
        "MllamaForConditionalGeneration",
        "Florence2ForConditionalGeneration",
    ),
    "audio": (
        "Qwen2AudioForConditionalGeneration",
        "VoxtralForConditionalGeneration",
        "GraniteSpeechForConditionalGeneration",
    ),
    "video": ("LlavaNextVideoForConditionalGeneration", "VideoLlavaForConditionalGeneration"),
    "delegated": (
        "Blip2ForConditionalGeneration",
        "InstructBlipForConditionalGeneration",
        "Kosmos2ForConditionalGeneration",
    ),
    "image encoder-decoder": (
        "VisionEncoderDecoderModel",
        "Pix2StructForConditionalGeneration",
        "TrOCRForCausalLM",
    ),
}

# Models of which eager itself takes no batch in this task, with the reason: their cases have prompts of one row.
ONE_ROW: dict[str, str] = {
    "RwkvForCausalLM": "eager mixes the rows of a batch in steps of one token: it adds [batch, width] to [batch, 1, width]",
}

# scope (a backend, or "all") -> model -> why its cases are not run.
SKIPS: dict[str, dict[str, str]] = {}


def skip_reason(backend: str, model: str) -> str | None:
    """Why a case is not run, or None."""
    return SKIPS.get(backend, {}).get(model) or SKIPS.get("all", {}).get(model)
