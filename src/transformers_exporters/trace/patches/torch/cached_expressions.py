"""The expression of a symbolic size is looked up before it is looked through."""

from __future__ import annotations

from typing import Any

from ....workarounds import Workaround


def looked_up(original: Any) -> Any:
    """`SymNode.expr`, which asks for what it has cached first."""

    def expression(self: Any) -> Any:
        env = self.shape_env
        if env is not None:
            version = env._replacements_version_counter
            if version == 0:
                return self._expr
            if self._expr_cache is not None and self._expr_ver == version:
                return self._expr_cache
        return original.fget(self)

    return property(expression)


WORKAROUND = Workaround(
    reason="Each use of a size walks through its whole expression to see whether it is a number, before the expression that "
    "torch has cached is returned (torch 2.13).",
    upstream="none: no issue is known to us; `SymNode.expr` of torch/fx/experimental/sym_node.py",
    targets=("torch.fx.experimental.sym_node:SymNode.expr",),
    apply=looked_up,
)
