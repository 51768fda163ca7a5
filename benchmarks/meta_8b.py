"""Export the shape of an 8-billion-parameter Llama to ONNX without its weights, and print time and peak memory.

    python benchmarks/meta_8b.py

The model is built on torch's `meta` device, so nothing is downloaded or allocated for its 32 GB of float32 weights.
"""

import json
import platform
import resource
import time
from importlib.metadata import version

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from transformers_exporters import OnnxConfig, OnnxExporter

# The published shape of Llama 3.1 8B.
CONFIG = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


def peak_gb() -> float:
    """Peak resident memory of this process in GB."""
    scale = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e9


def main() -> None:
    torch.set_num_threads(1)
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**CONFIG)).eval()
    inputs = {"input_ids": torch.randint(0, 1000, (1, 9)), "attention_mask": torch.ones(1, 9, dtype=torch.long)}
    start = time.perf_counter()
    program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
    seconds = time.perf_counter() - start
    print(
        json.dumps(
            {
                "parameters": sum(p.numel() for p in model.parameters()),
                "export_s": round(seconds, 1),
                "peak_gb": round(peak_gb(), 2),
                "nodes": len(list(program.model.graph)),
                "versions": {name: version(name) for name in ("torch", "transformers", "onnx", "onnxscript")},
                "date": time.strftime("%Y-%m-%d"),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
