"""Check what is fed to a graph before the engine sees it. Works on numpy arrays and on torch tensors, without torch."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..artifact.spec import ComponentSpec, Size, TensorSpec
from ..errors import InputError
from .axis_expressions import evaluate, holds, multiple

__all__ = ["check_feeds"]

_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

# The methods by which a torch tensor is cast, since this module cannot name torch's dtypes.
_TORCH_CASTS = {"bool": "bool", "int8": "char", "int16": "short", "int32": "int", "int64": "long", "uint8": "byte"}


def check_feeds(spec: ComponentSpec, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Check the feeds against a component's border and cast whole numbers where that is exact.

    Args:
        spec: The border.
        feeds: numpy arrays or torch tensors by input name (`TensorSpec.name`).

    Returns:
        The arrays in the order of `spec.inputs`, each with its input's dtype; the same objects where no cast was needed. One
        row that stood for the whole batch in the example stands for it here too.

    Raises:
        InputError: For a missing or unexpected input, a wrong rank, dtype or size, or two inputs that disagree on a named
            axis. Floating point is never cast: another width means another precision than the one that was exported.
    """
    inputs = {tensor.name: tensor for tensor in spec.inputs}
    for name in feeds:
        if name not in inputs:
            close = difflib.get_close_matches(name, inputs, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its inputs are {', '.join(inputs)}."
            raise InputError(f"{spec.name} has no input {name!r}; {hint}")
    checked = {}
    for tensor in spec.inputs:
        if tensor.name not in feeds:
            raise InputError(f"{spec.name} needs the input {tensor.name!r}, {_describe(tensor)}.")
        array = feeds[tensor.name]
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            raise InputError(f"{tensor.name} must be an array, {_describe(tensor)}, got {type(array).__name__}.")
        if len(array.shape) != len(tensor.shape):
            raise InputError(
                f"{tensor.name} must have {len(tensor.shape)} axes, {_describe(tensor)}, got shape {_sizes(array)}."
            )
        checked[tensor.name] = _cast(tensor, array)
    for name in spec.options.get("one_for_all", ()):
        checked[name] = _for_all(inputs[name], checked, inputs)
    _check_sizes(spec, checked)
    return checked


def _for_all(tensor: TensorSpec, arrays: Mapping[str, Any], inputs: Mapping[str, TensorSpec]) -> Any:
    """The array, with its one entry along a named axis repeated as often as another input has entries there."""
    array = arrays[tensor.name]
    sizes = list(_sizes(array))
    for axis, name in enumerate(tensor.shape):
        if sizes[axis] == 1 and isinstance(name, str):
            others = (
                _sizes(arrays[n])[i] for n, other in inputs.items() for i, s in enumerate(other.shape) if s == name
            )
            sizes[axis] = max(others)
    if sizes == _sizes(array):
        return array
    return np.broadcast_to(array, sizes).copy() if isinstance(array, np.ndarray) else array.expand(sizes).contiguous()


def _describe(tensor: TensorSpec) -> str:
    return f"{tensor.dtype} [{', '.join(map(str, tensor.shape))}]"


def _sizes(array: Any) -> list[int]:
    return [int(size) for size in array.shape]


@lru_cache(maxsize=64)
def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _cast(tensor: TensorSpec, array: Any) -> Any:
    given, wanted = _dtype_name(array.dtype), tensor.dtype
    if given == wanted:
        return array
    if given not in _WHOLE or wanted not in _WHOLE:
        raise InputError(f"{tensor.name} must be {wanted}, got {given}; convert it first.")
    if array.size if isinstance(array, np.ndarray) else array.numel():
        low, high = (0, 1) if wanted == "bool" else (np.iinfo(wanted).min, np.iinfo(wanted).max)
        smallest, largest = int(array.min()), int(array.max())
        if smallest < low or largest > high:
            raise InputError(
                f"{tensor.name} must be {wanted}, got {given} with values from {smallest} to {largest}, which do not fit."
            )
    if isinstance(array, np.ndarray | np.generic):
        return array.astype(wanted)
    if wanted not in _TORCH_CASTS:
        raise InputError(f"{tensor.name} must be {wanted}, got {given}; convert it first.")
    return getattr(array, _TORCH_CASTS[wanted])()


def _check_sizes(spec: ComponentSpec, arrays: Mapping[str, Any]) -> None:
    """Bind the named axes in a first pass, then check the derived ones, whatever the order of the inputs."""
    sizes: dict[str, int] = {}
    sources: dict[str, str] = {}
    derived: list[tuple[TensorSpec, int, str, int]] = []
    for tensor in spec.inputs:
        for axis, (wanted, got) in enumerate(zip(tensor.shape, arrays[tensor.name].shape, strict=True)):
            if isinstance(wanted, int):
                if got != wanted:
                    raise InputError(_wrong_size(tensor, axis, wanted, got, arrays))
            elif not wanted.isidentifier():
                derived.append((tensor, axis, wanted, int(got)))
            elif wanted not in sizes:
                sizes[wanted], sources[wanted] = int(got), tensor.name
                _check_range(spec, tensor, axis, wanted, int(got))
            elif sizes[wanted] != got:
                raise InputError(
                    f"{tensor.name} has {got} along axis {axis} ({wanted}), but {sources[wanted]} has {sizes[wanted]}."
                )
    for tensor, axis, expression, got in derived:
        _bind_multiple(spec, tensor, axis, expression, got, sizes)
        expected = evaluate(expression, sizes)
        if expected is not None and expected != got:
            names = ", ".join(f"{name}={size}" for name, size in sizes.items() if name in expression)
            raise InputError(_wrong_size(tensor, axis, expected, got, arrays, f" ({expression} with {names})"))
        _check_range(spec, tensor, axis, expression, got)
    for condition, line in spec.options.get("conditions", {}).items():
        if holds(condition, sizes) is False:
            names = ", ".join(f"{name}={size}" for name, size in sizes.items() if name in condition)
            raise InputError(
                f"{spec.name} was exported for inputs with {condition}, got {names}: the model decides by it ({line}). "
                "Export with inputs like these."
            )


def _bind_multiple(
    spec: ComponentSpec, tensor: TensorSpec, axis: int, expression: str, got: int, sizes: dict[str, int]
) -> None:
    """Where no input has an axis by itself, only `2*batch`, its size and range follow from that one."""
    factor, name = multiple(expression) or (0, "")
    if factor < 1 or name in sizes or expression in spec.axes:
        return
    if got % factor:
        raise InputError(
            f"{tensor.name} has {got} along axis {axis} ({expression}); a multiple of {factor} is allowed."
        )
    sizes[name] = got // factor
    if (legal := spec.axes.get(name)) is not None and not legal.allows(sizes[name]):
        bounds = f"{factor * legal.minimum} to {factor * legal.maximum}" if legal.maximum else f"at least {factor}"
        raise InputError(f"{tensor.name} has {got} along axis {axis} ({expression}); {bounds} is allowed.")


def _wrong_size(tensor: TensorSpec, axis: int, wanted: Size, got: int, arrays: Mapping[str, Any], why: str = "") -> str:
    shape = _sizes(arrays[tensor.name])
    return f"{tensor.name} must have size {wanted}{why} along axis {axis}, got {got} in shape {shape}."


def _check_range(spec: ComponentSpec, tensor: TensorSpec, axis: int, name: str, got: int) -> None:
    legal = spec.axes.get(name)
    if legal is None or legal.allows(got):
        return
    bounds = f"at least {legal.minimum}" if legal.maximum is None else f"{legal.minimum} to {legal.maximum}"
    steps = f", a multiple of {legal.multiple_of}" if legal.multiple_of != 1 else ""
    raise InputError(f"{tensor.name} has {got} along axis {axis} ({name}); {bounds}{steps} is allowed.")
