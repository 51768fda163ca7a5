"""`ExportedModel`: a set of exported graphs that is called, saved, reloaded and generated with like the source model."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch

from ..artifact.manifest import Manifest, ModelRecord
from ..artifact.spec import ComponentSpec, Json
from ..artifact.store import open_artifact, record_files, write_manifest, writing
from ..artifact.structure import rebuild
from ..configs import ExportConfig
from ..doors import find_backend
from ..errors import InputError, UnsupportedModelError
from ..exclusive import EXCLUSIVE
from ..runtime.assumed import check_assumed
from ..runtime.feeds import check_feeds
from ..runtime.load import flatten_feeds
from ..runtime.session import Session
from ..runtime.torch_arrays import to_numpy, to_torch
from .engine_state import EngineCache, call_stateful, is_stateful, run_stateful
from .outputs import make_object
from .plain_values import find_class
from .source import SourceModel, read_loose_weights

_PACKAGES = ("transformers-exporters", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class LoweredPart:
    """One lowered component and what its export reported.

    Attributes:
        lowered: `backends.contract.Lowered`.
        fired: How often each workaround fired.
    """

    lowered: Any
    fired: Mapping[str, int] = field(default_factory=dict)


class ExportedComponent:
    """One exported graph, callable like the module that it came from.

    Attributes:
        spec: Its border.
        program: The backend's program object; None in an artifact that was loaded from disk.
        state: Of a stateful graph, what stands for the session's state; None before its first call.
    """

    def __init__(self, spec: ComponentSpec, program: Any, open_session: Any) -> None:
        self.spec = spec
        self.program = program
        self._open_session = open_session
        self.state: EngineCache | None = None

    @cached_property
    def session(self) -> Session:
        """The engine's session, opened at the first call."""
        session: Session = self._open_session(self.spec.name)
        return session

    def __call__(self, **inputs: Any) -> Any:
        """Run the graph.

        Args:
            inputs: What the source module's forward takes: torch tensors, caches, the flags that it was exported with.

        Returns:
            What the source module returns: the same classes, names and nesting, torch tensors.

        Raises:
            InputError: If an input is missing, unexpected or of a wrong dtype, rank or size, or a flag differs.
        """
        if is_stateful(self.spec):
            return call_stateful(self, inputs)
        return self.outputs(self.run(self.feeds(inputs)))

    def compute(self, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The same as a call; outputs by name."""
        return run_stateful(self, inputs) if is_stateful(self.spec) else self.run(self.feeds(inputs))

    def feeds(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Nested inputs, torch tensors or numpy arrays, as checked tensors by input name."""
        feeds = flatten_feeds(self.spec, inputs)
        return check_feeds(self.spec, {name: to_torch(value) for name, value in feeds.items()})

    def run(self, feeds: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Run on checked torch tensors by name; outputs by name."""
        session = self.session
        if session.arrays == "torch":
            computed = session.run(feeds)
            check_assumed(self.spec, computed)
            return computed
        outputs = session.run({name: to_numpy(torch.as_tensor(value)) for name, value in feeds.items()})
        check_assumed(self.spec, outputs)
        return {name: to_torch(value) for name, value in outputs.items()}

    def outputs(self, tensors: Mapping[str, torch.Tensor]) -> Any:
        """Outputs by name as what the source module returns."""
        return rebuild(self.spec.output_structure, [tensors[o.name] for o in self.spec.outputs], make_object)


class ExportedModel(Mapping[str, ExportedComponent]):
    """An exported model: components by name, to call, to generate with, to save and to reload.

    Made by `exporter.export_model(...)` or `ExportedModel.from_pretrained(directory)`.

    Attributes:
        components: `ExportedComponent` by name.
        manifest: What the artifact says about itself.
        config: The source model's config (None for a plain module).
        generation_config: Its generation config, or None.
    """

    def __init__(
        self,
        manifest: Manifest,
        components: Mapping[str, ExportedComponent],
        config: Any,
        generation_config: Any,
        source: SourceModel | None = None,
        parts: tuple[LoweredPart, ...] = (),
    ) -> None:
        self.manifest = manifest
        self.components = dict(components)
        self.config = config
        self.generation_config = generation_config
        self.directory: Path | None = None
        self._opened_with: dict[str, Any] = {"trust_remote_code": True}  # exported here
        self._source = source
        self._parts = parts
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def of_parts(
        cls, parts: tuple[LoweredPart, ...], source: SourceModel, config: ExportConfig, generation: Mapping[str, Json]
    ) -> Self:
        """Assemble freshly lowered components. They run from a temporary directory until they are saved."""
        manifest = Manifest(
            format=config.export_format,
            components={part.lowered.spec.name: part.lowered.spec for part in parts},
            files={},
            model=source.record,
            config=config.to_dict(),
            packages=_versions(config.export_format),
            workarounds={part.lowered.spec.name: dict(part.fired) for part in parts},
            notes={part.lowered.spec.name: dict(part.lowered.notes) for part in parts},
            generation=generation,
        )
        exported = cls(manifest, {}, source.config, source.generation_config, source, parts)

        def open_session(name: str) -> Session:
            if exported._scratch is None:
                exported._scratch = tempfile.TemporaryDirectory(prefix="exported-")
                exported.save_pretrained(Path(exported._scratch.name) / "artifact")
            root, saved = open_artifact(Path(exported._scratch.name) / "artifact")
            trust = {"trust_remote_code": True} if saved.format == "dynamo" else {}
            opened: Session = find_backend(saved.format).load("open")(root, saved.components[name], **trust)
            return opened

        for part in parts:
            spec = part.lowered.spec
            exported.components[spec.name] = ExportedComponent(spec, part.lowered.program, open_session)
        return _named(exported)

    @classmethod
    def from_pretrained(
        cls,
        directory: Path | str,
        *,
        device: str | torch.device | None = None,
        trust_remote_code: bool = False,
        verify_hashes: bool = False,
        **runtime_options: Any,
    ) -> Self:
        """Open an artifact that `save_pretrained` wrote.

        Args:
            directory: The artifact.
            device: Where to run it, in the engine's terms (`"cuda"`, `"CPU"`); None for the engine's default.
            trust_remote_code: Needed for formats whose files may carry pickled Python objects (`.pt2`).
            verify_hashes: Hash large files too; small ones always are.
            runtime_options: Handed to the backend's run door, for example `threads=2`.

        Raises:
            ArtifactError: If the artifact is missing, damaged, of a newer schema, or needs `trust_remote_code`.
        """
        root, manifest = open_artifact(directory, verify_hashes=verify_hashes)
        options = dict(runtime_options)
        if device is not None:
            options["device"] = str(device)
        if manifest.format == "dynamo":
            options["trust_remote_code"] = trust_remote_code
        open_door = find_backend(manifest.format).load("open")

        def open_session(name: str) -> Session:
            opened: Session = open_door(root, manifest.components[name], **options)
            return opened

        components = {name: ExportedComponent(spec, None, open_session) for name, spec in manifest.components.items()}
        config, generation_config = _load_configs(root, manifest.model)
        exported = cls(manifest, components, config, generation_config)
        exported.directory = root
        exported._opened_with = {"device": device, "trust_remote_code": trust_remote_code, **runtime_options}
        return _named(exported)

    def save_pretrained(self, directory: Path | str) -> None:
        """Write the artifact: all of it, or nothing.

        Args:
            directory: A new or empty directory, or an artifact to replace.

        Raises:
            ArtifactError: If the directory cannot be written, or holds something else.
            UnsupportedModelError: If this object was itself loaded from an artifact (copy the directory instead).
        """
        if self._source is None:
            raise UnsupportedModelError(f"This model was loaded from {self.directory}: copy that directory instead.")
        save = find_backend(self.manifest.format).load("save")
        with EXCLUSIVE, writing(directory) as target:
            files = save([part.lowered for part in self._parts], target)
            self._source.write(target)
            specs = {name: _with_files(spec, tuple(files[name])) for name, spec in self.manifest.components.items()}
            saved = _replaced(self.manifest, components=specs, files=record_files(target))
            write_manifest(target, saved)
        self.directory = Path(directory)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as its directory, which is opened again; raises `TypeError` if it is not saved."""
        if self.directory is None:
            raise TypeError(
                "An exported model is pickled and copied as its directory: save it first, with save_pretrained."
            )
        return _opened_again, (self.directory.absolute(), self._opened_with)

    def __getitem__(self, name: str) -> ExportedComponent:
        if name not in self.components:
            raise InputError(f"There is no component {name!r}; this model has {', '.join(self.components)}.")
        return self.components[name]

    def __contains__(self, name: object) -> bool:
        return name in self.components

    def __iter__(self) -> Iterator[str]:
        return iter(self.components)

    def __len__(self) -> int:
        return len(self.components)

    def __call__(self, **inputs: Any) -> Any:
        """Run the only component. Raises `InputError` if there are several."""
        if len(self.components) != 1:
            names = ", ".join(self.components)
            raise InputError(f'This model has several components ({names}): call exported["decode"](...) or generate.')
        return next(iter(self.components.values()))(**inputs)

    @cached_property
    def loose_weights(self) -> Mapping[str, torch.Tensor]:
        """Weights that the source class's code uses between the components of a generation, by name."""
        if self._source is not None:
            return self._source.loose
        return {} if self.directory is None else read_loose_weights(self.directory)

    @cached_property
    def generator(self) -> Any:
        """A `GenerationMixin` model over the components: a `PreTrainedModel` of the source's class, without weights."""
        from .generate import make_generator

        return make_generator(self)

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Generate with the exported graphs: transformers' own `GenerationMixin.generate`, all of its arguments.

        `assistant_model` may be an `ExportedModel` too: a draft for assisted decoding. It needs a decode graph that takes
        several tokens and returns all of their logits: export with `multi_token_decode=True`.
        """
        if isinstance(kwargs.get("assistant_model"), ExportedModel):
            kwargs["assistant_model"] = kwargs["assistant_model"].generator
        try:
            return self.generator.generate(*args, **kwargs)
        except (RuntimeError, NotImplementedError) as error:
            if "meta" not in str(error):
                raise
            raise UnsupportedModelError(
                f"This artifact has the graphs {', '.join(self)}, and generate needs another part of the model"
                f"{_line_of(error, self.manifest.model)}: export that part by itself, and call it where the model does."
            ) from error

    @cached_property
    def _stand_in(self) -> Any:
        """The source's class without weights, its forward run by the only component; None where there is no such class."""
        from .skeleton import make_stand_in

        return make_stand_in(self)

    def __getattr__(self, name: str) -> Any:
        """What a `PreTrainedModel` has besides (`device`, `can_generate`, ...), so that `pipeline(model=...)` takes it."""
        components = vars(self).get("components", ())
        if not name.startswith("_") and "decode" in components:
            return getattr(self.generator, name)
        if name.startswith("_") or len(components) != 1 or self._stand_in is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self._stand_in, name)


def _opened_again(directory: Path, options: Mapping[str, Any]) -> ExportedModel:
    return ExportedModel.from_pretrained(directory, **options)


def _named(exported: Any) -> Any:
    """Name the class of an object that does what the source's does: pipelines choose what they do by that name."""
    name = exported.manifest.model.class_path.rpartition(".")[2]
    if name and ("decode" in exported or len(exported) == 1):
        exported.__class__ = type(name, (type(exported),), {"__module__": __name__, "__doc__": ExportedModel.__doc__})
    return exported


def _line_of(error: BaseException, model: ModelRecord) -> str:
    """Where in the source file of the model's class an error comes from, in brackets."""
    module = model.class_path.rpartition(".")[0].rpartition(".")[2]
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame for frame in reversed(frames) if Path(frame.filename).stem == module), None)
    return f" ({module}.py:{line.lineno}: {line.line})" if line else ""


def _with_files(spec: ComponentSpec, files: tuple[str, ...]) -> ComponentSpec:
    return dataclasses.replace(spec, files=files)


def _replaced(manifest: Manifest, **changes: Any) -> Manifest:
    return dataclasses.replace(manifest, **changes)


def _versions(format: str) -> dict[str, str]:
    backend = find_backend(format)
    names = dict.fromkeys((*_PACKAGES, *backend.requires, *backend.runs_on))
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an engine that only runs the artifact need not be here
    return found


def _load_configs(root: Path, model: ModelRecord) -> tuple[Any, Any]:
    from transformers import AutoConfig, GenerationConfig

    config = generation_config = None
    if (root / "config.json").is_file():
        cls: Any = find_class(model.config_class) or AutoConfig
        config = cls.from_pretrained(root)
    if (root / "generation_config.json").is_file():
        generation_config = GenerationConfig.from_pretrained(root)
    return config, generation_config
