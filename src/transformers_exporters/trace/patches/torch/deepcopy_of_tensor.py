"""`copy.deepcopy(tensor)` inside a trace: `tensor.clone()`, which the graph holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from ....workarounds import Workaround


def cloned(original: Callable[..., Any]) -> Callable[..., Any]:
    """The copy of a tensor under trace; within one `deepcopy`, the same for the same tensor."""

    def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Any:
        if get_proxy_mode() is None:
            return original(self, memo)
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    return __deepcopy__


WORKAROUND = Workaround(
    reason="`copy.deepcopy` copies a tensor's memory, which a tensor under trace has none of (Dory copies the layers of its cache for "
    "every loop over its recurrent block).",
    upstream="none: no issue is known to us",
    targets=("torch._subclasses.fake_tensor:FakeTensor.__deepcopy__",),
    apply=cloned,
)
