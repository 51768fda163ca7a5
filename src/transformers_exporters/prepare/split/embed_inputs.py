"""The step before the language model as a module of its own: embed the tokens and merge image or audio features in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...hf.replaced import Reached, returning, stopping_at


class EmbedInputs(torch.nn.Module):
    """Runs a composite model's forward up to its language model.

    Args:
        model: The composite model.
        decoder: Its language model.
        stubs: Modules whose results are given instead of computed (encoders or projectors).
        names: The tensor kwargs of the language model to return.
    """

    def __init__(
        self, model: torch.nn.Module, decoder: torch.nn.Module, stubs: Sequence[torch.nn.Module], names: Sequence[str]
    ) -> None:
        super().__init__()
        self.model = model
        self.config = getattr(model, "config", None)
        self._decoder = [decoder]  # in a list: registered once, below `model`
        self._stubs = list(stubs)
        self._names = list(names)

    def forward(self, features: Sequence[Any] = (), **kwargs: Any) -> dict[str, Any]:
        """The language model's tensor kwargs for the model's own kwargs and the stubs' results, in call order."""
        with stopping_at(self._decoder[0]), returning(self._stubs, list(features)):
            try:
                self.model(**kwargs)
            except Reached as reached:
                return {name: reached.kwargs[name] for name in self._names if reached.kwargs.get(name) is not None}
        raise RuntimeError("the model finished without its language model")
