"""The values of a lowered component's weights, and what became of them: shared by components, held once."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..artifact.weights import CheckpointRef, TensorRef, WeightRef
from ..prepare.references import has_values, mapped, memory_key
from .blockwise import Blocks, quantize_rows
from .contract import Quantizer

if TYPE_CHECKING:
    from ..backends.contract import Lowered


class Values:
    """Weights of the components of one export, read from where they are and quantized once."""

    def __init__(self) -> None:
        self._read: dict[CheckpointRef, torch.Tensor] = {}
        self._blocks: dict[Any, tuple[torch.Tensor, Blocks]] = {}
        self._shared: dict[bytes, TensorRef] = {}

    def of(self, lowered: Lowered) -> dict[str, torch.Tensor]:
        """The values of every initializer of an `ONNXProgram` that has some, by name; files are mapped, not read."""
        found: dict[str, torch.Tensor] = {}
        for name, value in lowered.program.model.graph.initializers.items():
            reference = lowered.weights.get(name)
            raw = getattr(value.const_value, "raw", None)
            if reference is not None:
                if has_values(reference):
                    found[name] = self._tensor(reference)
            elif isinstance(raw, torch.Tensor) and raw.device.type != "meta":
                found[name] = raw
        return found

    def blocks(self, weight: torch.Tensor, **options: Any) -> Blocks:
        """`blockwise.quantize_rows`, once for a weight that several names or components share."""
        key = (memory_key(weight), *sorted(options.items()))
        if key not in self._blocks:
            # The weight is kept as well: its address must not be given to another one.
            self._blocks[key] = weight, quantize_rows(weight, **options)
        return self._blocks[key][1]

    def placed(self, lowered: Lowered, made: Mapping[str, torch.Tensor]) -> Lowered:
        """The component with the weights that its graph still has, and the new ones.

        What lies in a checkpoint is copied from there when the artifact is written: linking the file would bring the
        values of the weights that were quantized as well.
        """
        initializers = lowered.program.model.graph.initializers
        weights: dict[str, WeightRef] = {}
        for name, reference in lowered.weights.items():
            if name in initializers:
                weights[name] = reference if isinstance(reference, TensorRef) else _reference(self._tensor(reference))
        weights |= {name: _reference(tensor) for name, tensor in made.items()}
        return dataclasses.replace(lowered, weights=weights)

    def shared(self, constant: Any) -> TensorRef:
        """A reference to an ONNX constant's values; equal values of several components are held once.

        Sub-byte dtypes are packed in a uint8 tensor of one axis.
        """
        raw = constant.tobytes()
        key = hashlib.sha256(raw).digest()
        if key not in self._shared:
            whole = constant.dtype.itemsize >= 1 and hasattr(torch, str(constant.dtype.numpy()))
            dtype = getattr(torch, str(constant.dtype.numpy())) if whole else torch.uint8
            self._shared[key] = _reference(torch.frombuffer(bytearray(raw), dtype=dtype))
        return self._shared[key]

    def _tensor(self, reference: WeightRef) -> torch.Tensor:
        if isinstance(reference, TensorRef):
            tensor: torch.Tensor = reference.tensor
            return tensor
        if reference not in self._read:
            self._read[reference] = mapped(reference)
        return self._read[reference]


@dataclass(kw_only=True)
class SharesValues(Quantizer):
    """A quantizer whose components share what was quantized, as long as the model is being exported."""

    @contextmanager
    def quantize_model(self, model: torch.nn.Module) -> Iterator[None]:
        self._values = Values()
        try:
            yield
        finally:
            del self._values

    @property
    def values(self) -> Values:
        """Those of the export that is going on."""
        return self._values


def _reference(tensor: torch.Tensor) -> TensorRef:
    return TensorRef(tensor, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
