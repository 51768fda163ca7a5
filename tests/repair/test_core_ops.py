"""Every core op, on every backend, computes what eager computes, at a size that was traced and at two that were not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from repair.core_op_cases import FAMILIES, Calls, Complex, Fresh, Kw, Raw, Swapped

import transformers_exporters as te
from transformers_exporters.repair.core_ops import CORE_OPS
from transformers_exporters.repair.expand import rules

EXPORTERS = {
    "dynamo": (te.DynamoExporter, te.DynamoConfig),
    "onnx": (te.OnnxExporter, te.OnnxConfig),
    "openvino": (te.OpenVINOExporter, te.OpenVINOConfig),
    "executorch": (te.ExecutorchExporter, te.ExecutorchConfig),
}
TRACED, OTHERS = 3, (2, 5)


class Ops(torch.nn.Module):
    """Makes every call of a family; op name -> its results."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, **tensors: torch.Tensor) -> dict[str, Any]:
        return {name.replace(".", "_"): self.call(name, args, tensors) for name, args in self.calls.items()}

    def call(self, name: str, args: tuple[Any, ...], tensors: Mapping[str, torch.Tensor]) -> Any:
        def value(argument: Any) -> Any:
            if isinstance(argument, Raw):
                return str(argument)
            if isinstance(argument, Fresh):
                return tensors[argument].clone()
            if isinstance(argument, Complex):
                return torch.view_as_complex(tensors[argument])
            if isinstance(argument, Swapped):
                return tensors[argument].transpose(0, 1)
            if isinstance(argument, str):
                return tensors[argument]
            return [value(item) for item in argument] if isinstance(argument, list) else argument

        packet, _, overload = name.partition("#")[0].partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload)
        kwargs = {key: value(item) for arg in args if isinstance(arg, Kw) for key, item in arg.items()}
        result = op(*[value(arg) for arg in args if not isinstance(arg, Kw)], **kwargs)
        results = result if isinstance(result, list | tuple) else (result,)
        results = tuple(r if isinstance(r, torch.Tensor) else torch.full((2,), r) for r in results)
        if name in FAMILIES["random numbers"][1]:
            results = tuple(r * 0 for r in results)  # of random numbers, shapes and dtypes can be compared
        if "embedding_bag" in name:
            results = results[:1]  # the others are for its gradient
        real = [torch.view_as_real(r.resolve_conj()) if r.is_complex() else r for r in results]
        return real[0] if len(real) == 1 else tuple(real)


def broken(format: str, family: str, calls: Calls) -> dict[str, str]:
    """The calls that a backend gets wrong or refuses: op name -> what went wrong."""
    inputs = FAMILIES[family][0]
    used = _used(calls, inputs(TRACED))
    try:
        exported = _export(format, Ops(calls), used)
        found: dict[str, str] = {}
        for n in (TRACED, *OTHERS):
            case = {name: tensor for name, tensor in inputs(n).items() if name in used}
            got, wanted = exported(**case), Ops(calls)(**case)
            for name in calls:
                key = name.replace(".", "_")
                try:
                    torch.testing.assert_close(got[key], wanted[key], atol=2e-5, rtol=1e-4)
                except AssertionError as error:
                    found.setdefault(name, f"at size {n}: {error}"[:300])
        return found
    except Exception as error:
        if len(calls) == 1:
            return {next(iter(calls)): f"{type(error).__name__}: {error}"[:400]}
        names, half = list(calls), len(calls) // 2
        halves = ({n: calls[n] for n in names[:half]}, {n: calls[n] for n in names[half:]})
        return {k: v for part in halves for k, v in broken(format, family, part).items()}


def _used(calls: Calls, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    text = repr(list(calls.values()))
    used = {name: tensor for name, tensor in tensors.items() if f"'{name}'" in text}
    return used or dict([next(iter(tensors.items()))])


def _export(format: str, module: Ops, inputs: Mapping[str, torch.Tensor]) -> Any:
    exporter, config = EXPORTERS[format]
    first = torch.export.Dim("n", min=2, max=8)
    shapes = {name: {0: first} if t.dim() > 1 and len(t) == TRACED else None for name, t in inputs.items()}
    return exporter().export_model(module.eval(), inputs, config=config(dynamic_shapes=shapes))


def test_the_list_is_closed() -> None:
    """Every core op and every rule of ours has a case; every case is a core op or can be written in them."""
    cases = {f"aten.{name.partition('#')[0]}" for _, calls in FAMILIES.values() for name in calls}
    assert cases >= CORE_OPS
    assert set(rules()) <= cases


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("format", EXPORTERS)
def test_a_family_of_ops(format: str, family: str) -> None:
    assert broken(format, family, FAMILIES[family][1]) == {}
