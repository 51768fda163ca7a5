"""`export`: a checkpoint becomes an artifact, verified."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from . import options
from .screen import FAILED, Screen, command

if TYPE_CHECKING:
    from ..verification import Report


def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory to write.", show_default=False)],
    checkpoint: options.CheckpointOrNone = None,
    tiny: Annotated[
        str | None,
        typer.Option(
            help="Instead of a checkpoint: a tiny random model of this architecture (llama, qwen3_vl).",
            show_default=False,
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", help="dynamo, onnx, openvino or executorch.")] = "onnx",
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="forward, generation, or auto: generation where the model can. Or what the model is for (fill-mask, "
            "feature-extraction, ...), which chooses its class.",
        ),
    ] = "auto",
    for_generation: Annotated[
        bool, typer.Option("--for-generation", help="The same as --task generation.", show_default=False)
    ] = False,
    dynamic: Annotated[bool, typer.Option("--dynamic/--static", help="Take inputs of any size.")] = True,
    dtype: options.Dtype = None,
    gguf_file: Annotated[str | None, typer.Option(help="Name of a GGUF file in the checkpoint.")] = None,
    opset: Annotated[int | None, typer.Option(help="ONNX opset.", show_default=False)] = None,
    optimize: Annotated[
        bool | None, typer.Option("--optimize/--no-optimize", help="Optimise the ONNX graph.", show_default=False)
    ] = None,
    multi_token_decode: Annotated[
        bool, typer.Option("--multi-token-decode", help="One decode graph for one token, several, or a prompt.")
    ] = False,
    static_cache: Annotated[
        int | None,
        typer.Option(min=1, help="Decode over a fixed cache of this many positions.", show_default=False),
    ] = None,
    quantize: Annotated[
        str | None,
        typer.Option(help="Quantize with the format's recipe: int8, int4 or static-int8.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="Any other config field, as name=value.", show_default=False)
    ] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not compare with the model.")] = False,
    trust_remote_code: options.Trust = False,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Export a checkpoint, and prove that the result computes what the model computes."""
    with command(as_json=as_json, debug=debug) as screen:
        config = _config(
            {"export_format": format, "dynamic": dynamic, "opset_version": opset, "optimize": optimize},
            option or [],
        )
        if quantize is not None:
            config = _quantized(config, quantize)
        asked = for_generation or multi_token_decode or static_cache is not None
        generation, task_name = _wants_generation(task, asked)
        options.check_dtype(dtype)
        start = time.perf_counter()
        with screen.stage("Load"):
            from ..exporters import AutoHfExporter

            exporter = AutoHfExporter.from_config(config)
            model, inputs, generation = _model(
                checkpoint,
                tiny,
                generation,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
                gguf_file=gguf_file,
                task=task_name,
            )
        with screen.stage("Export"):
            exported = exporter.export_model(
                model,
                inputs,
                config=config,
                for_generation=generation,
                generation_config=_generation_config(model, static_cache),
                multi_token_decode=multi_token_decode or static_cache is not None,
            )
        with screen.stage(f"Save to {output}"):
            exported.save_pretrained(output)
        seconds = time.perf_counter() - start
        report = None if no_verify else _verify(screen, model, output, inputs if tiny else None, trust_remote_code)
        _finish(screen, output, seconds, report)


def _model(
    checkpoint: str | None, tiny: str | None, generation: bool | None, **load: Any
) -> tuple[Any, dict[str, Any], bool]:
    """The model, sample inputs for it, and whether to export it for generation (None: where it can generate)."""
    if tiny is not None:
        if checkpoint is not None:
            raise ConfigError(f"Give either a checkpoint or --tiny, not both: leave out {checkpoint!r}.")
        if load["gguf_file"] is not None:
            raise ConfigError("--gguf-file belongs to a checkpoint: leave it out with --tiny.")
        if load["task"] is not None:
            raise ConfigError(f"--task {load['task']} belongs to a checkpoint: leave it out with --tiny.")
        from ..testing import tiny_model

        model, inputs = tiny_model(tiny)
        if load["dtype"] is not None:
            model, inputs = _cast(model, inputs, load["dtype"])
        generation = _can_generate(model) if generation is None else generation
        return model, {n: v for n, v in inputs.items() if not (generation and n.startswith("decoder_"))}, generation
    if checkpoint is None:
        raise ConfigError("Give a checkpoint, or --tiny with the name of an architecture.")
    from ..prepare.checkpoint import load_checkpoint
    from ..prepare.samples import sample_inputs

    model = load_checkpoint(checkpoint, **load)
    generation = _can_generate(model) if generation is None else generation
    return model, sample_inputs(model, task="generation" if generation else "forward"), generation


def _can_generate(model: Any) -> bool:
    return bool(getattr(model, "can_generate", lambda: False)())


def _cast(model: Any, inputs: dict[str, Any], dtype: str) -> tuple[Any, dict[str, Any]]:
    import torch

    wanted = getattr(torch, dtype)
    cast = {name: value.to(wanted) if value.is_floating_point() else value for name, value in inputs.items()}
    return model.to(wanted), cast


def _config(fields: dict[str, Any], settings: list[str]) -> Any:
    from ..configs import AutoExportConfig

    given = {name: value for name, value in fields.items() if value is not None}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set takes name=value, got {setting!r}.")
        given[name] = _value(value)
    return AutoExportConfig.from_dict(given)


def _quantized(config: Any, name: str) -> Any:
    import dataclasses

    from ..quantize.recipes import recipe

    return dataclasses.replace(config, quantizer=recipe(name, config.export_format))


def _value(text: str) -> Any:
    """A value of `--set`: JSON where it is JSON (`4`, `true`, `null`), else the text itself."""
    import json

    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except json.JSONDecodeError:
        return text


def _wants_generation(task: str, asked: bool) -> tuple[bool | None, str | None]:
    """Whether to export for generation (None: where the model can), and the task that chooses the model's class."""
    task = task.removesuffix("-with-past")
    if task not in ("auto", "forward", "generation"):
        from ..prepare.tasks import check_task

        check_task(task)
        return (True if asked else None), task
    if asked and task == "forward":
        raise ConfigError("--task forward exports no decode graph: leave out the options for generation.")
    return (True if asked else {"auto": None, "forward": False, "generation": True}[task]), None


def _generation_config(model: Any, static_cache: int | None) -> Any:
    """None, or the model's own generation config with a static cache of that length."""
    if static_cache is None:
        return None
    config = copy.deepcopy(model.generation_config)
    config.cache_implementation = "static"
    config.max_cache_len = static_cache
    return config


def _verify(screen: Screen, model: Any, output: Path, inputs: dict[str, Any] | None, trust_remote_code: bool) -> Report:
    from ..verification import verify

    with screen.stage("Verify"):
        return verify(model, output, inputs, trust_remote_code=trust_remote_code)


def _finish(screen: Screen, output: Path, seconds: float, report: Report | None) -> None:
    from ..artifact.store import open_artifact
    from .inspect import components_table
    from .verify import verification_table

    _, manifest = open_artifact(output)
    result = {
        "output": str(output),
        "format": manifest.format,
        "seconds": round(seconds, 2),
        "bytes": sum(record.bytes for record in manifest.files.values()),
        "components": list(manifest.components),
        "verification": report.to_dict() if report else None,
    }
    screen.result(result, components_table(manifest), *([verification_table(report.to_dict())] if report else []))
    if report is not None and not report.ok:
        said = (
            "cannot be compared with the model here" if report.undecided else "does not compute what the model computes"
        )
        screen.err.print(f"[red]error:[/] {output} {said}.", highlight=False)
        raise typer.Exit(FAILED)
