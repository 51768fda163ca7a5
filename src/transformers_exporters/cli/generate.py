"""`generate`: text from a saved artifact."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from . import options
from .screen import command


def generate(
    artifact: options.Artifact,
    prompts: Annotated[list[str], typer.Argument(help="One prompt, or several for a batch.", show_default=False)],
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens to generate at most.")] = 64,
    chat: Annotated[
        bool | None, typer.Option("--chat/--no-chat", help="Use the chat template; default: if there is one.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of taking the likeliest token.")] = False,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Of the sampling.")] = None,
    top_p: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Of the sampling.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sampling.")] = 0,
    num_beams: Annotated[int, typer.Option(min=1, help="Beams of the search.")] = 1,
    device: options.Device = None,
    threads: options.Threads = None,
    trust_remote_code: options.Trust = False,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Let an exported language model answer."""
    with command(as_json=as_json, debug=debug) as screen:
        with screen.stage("Open"):
            from ..hf.exported import ExportedModel
            from ..hf.text import decode, encode, load_tokenizer, seeded, streamer

            tokenizer = load_tokenizer(artifact, trust_remote_code=trust_remote_code)
            exported = ExportedModel.from_pretrained(
                artifact,
                trust_remote_code=trust_remote_code,
                **options.runtime_options(device, threads),
            )
            for component in exported.components.values():
                _ = component.session  # opened now, so that it does not count into the speed
            inputs = encode(tokenizer, prompts, chat=chat)
        settings: dict[str, Any] = {"max_new_tokens": max_new_tokens, "do_sample": sample, "num_beams": num_beams}
        settings |= {k: v for k, v in (("temperature", temperature), ("top_p", top_p)) if v is not None}
        streaming = len(prompts) == 1 and num_beams == 1 and not as_json and sys.stdout.isatty()
        if streaming:
            settings["streamer"] = streamer(tokenizer)
        start = time.perf_counter()
        with seeded(seed):
            tokens = exported.generate(**inputs, **settings)
        seconds = time.perf_counter() - start
        made = tokens[:, inputs["input_ids"].shape[1] :]
        answers = decode(tokenizer, made)
        count = int((made != tokenizer.pad_token_id).sum())
        screen.note(f"{count} tokens in {seconds:.1f} s, {count / seconds:.1f} tokens/s")
        result = {"answers": answers, "tokens": tokens.tolist(), "seconds": round(seconds, 3)}
        screen.result(result, *([] if streaming else [escape(answer) for answer in answers]))
