"""What one component of an artifact takes, returns and keeps: plain records, stdlib only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: One axis of a tensor: a fixed size, or the name (or an expression of names, e.g. `"2*sequence"`) of a dynamic one.
Size = int | str

#: A JSON value: what structures and constants are made of.
Json = Any


@dataclass(frozen=True)
class AxisRange:
    """The sizes that a named axis may take, both ends included. `maximum=None`: no bound.

    `multiple_of` says that only multiples are legal (for example a length that the graph folds into blocks).
    """

    minimum: int = 1
    maximum: int | None = None
    multiple_of: int = 1

    def allows(self, size: int) -> bool:
        """Whether a size is legal."""
        above = self.maximum is not None and size > self.maximum
        return not (size < self.minimum or above or size % self.multiple_of)


@dataclass(frozen=True)
class TensorSpec:
    """One tensor that crosses a component's border.

    Attributes:
        name: The leaf path in the model's own kwargs or outputs, e.g. `cache.layers.0.keys`.
        port: The name that the engine knows it by. Equals `name`, or `input.<name>` / `output.<name>` where the same
            leaf path stands on both sides.
        dtype: numpy's name (`float32`, `int64`, `bool`) or `bfloat16`.
        shape: One `Size` an axis.
    """

    name: str
    port: str
    dtype: str
    shape: tuple[Size, ...]


@dataclass(frozen=True)
class ComponentSpec:
    """The border of one exported graph.

    Attributes:
        name: `model`, `prefill`, `decode`, `image_encoder`, ...
        inputs: In the order of the engine's inputs.
        outputs: In the order of the engine's outputs.
        axes: Range of every axis name that occurs in a shape.
        input_structure: Structure tree (see `artifact.structure`) of the kwargs, leaves numbered as in `inputs`.
        output_structure: The same for what the model returns, leaves numbered as in `outputs`.
        state: Pairs (input name, output name) of tensors that carry state from one call to the next.
        constants: Non-tensor kwargs that the graph has baked in, by leaf path (`use_cache`: True).
        files: File names relative to the artifact's directory, main graph first; filled by `save`.
        options: What the backend's run door needs to know to open it.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    axes: Mapping[str, AxisRange] = field(default_factory=dict)
    input_structure: Json = None
    output_structure: Json = None
    state: tuple[tuple[str, str], ...] = ()
    constants: Mapping[str, Json] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
