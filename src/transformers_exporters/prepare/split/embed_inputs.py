"""The step before the language model as a module of its own: embed the tokens and merge image or audio features in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutputWithPast

from ...hf.replaced import replaced, returning


class EmbedInputs(torch.nn.Module):
    """Runs a composite model's forward up to its language model.

    Args:
        model: The composite model.
        decoder: Its language model.
        stubs: Modules whose results are given instead of computed (encoders or projectors).
        names: The kwargs of the language model to return: those that are or hold tensors, less its cache.
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
        """The language model's kwargs for the model's own kwargs and the stubs' results, in call order."""
        reached: list[dict[str, Any]] = []

        def language_model(*args: Any, **inputs: Any) -> Any:
            # Not an exception: it would leave torch.export inside the modules that it had entered. What the model does
            # with this result is no output of the graph, so nothing of it stays.
            reached.append(inputs)
            return BaseModelOutputWithPast(last_hidden_state=inputs["inputs_embeds"])

        with replaced(self._decoder[0], language_model), returning(self._stubs, list(features)):
            self.model(**kwargs)
        return {name: reached[0][name] for name in self._names if reached[0].get(name) is not None}
