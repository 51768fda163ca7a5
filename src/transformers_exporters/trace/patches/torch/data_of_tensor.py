"""`tensor.data` inside a trace: `tensor.detach()`, which the graph holds."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from ....workarounds import Workaround


def detached(original: Any) -> property:
    """The attribute `data` of a tensor under trace; what is written to it is written as before."""

    def data(self: Tensor) -> Tensor:
        found: Tensor = original.__get__(self) if get_proxy_mode() is None else self.detach()
        return found

    def write(self: Tensor, value: Tensor) -> None:
        original.__set__(self, value)

    return property(data, write)


WORKAROUND = Workaround(
    reason="`x.data` is a tensor that the trace has not seen made: torch.export takes it for a constant and refuses it (I-BERT: "
    "`self.weight.data.detach()`).",
    upstream="none: no issue is known to us",
    targets=("torch._subclasses.fake_tensor:FakeTensor.data",),
    apply=detached,
)
