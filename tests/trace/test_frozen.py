"""`trace.frozen`: what is said of an axis that came out constant."""

import torch

from transformers_exporters import DynamoConfig, DynamoExporter


class Steps(torch.nn.Module):
    def forward(self, input_ids):
        """input_ids int64 [batch, n] -> float [batch, n]: each step depends on the one before."""
        state, states = input_ids[:, 0] * 0.0, []
        for step in range(input_ids.shape[1]):
            state = state * 0.5 + input_ids[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


def test_the_line_that_fixed_it_is_named_once(caplog):
    DynamoExporter().export(
        Steps().eval(), {"input_ids": torch.ones(2, 6, dtype=torch.int64)}, DynamoConfig(dynamic=True)
    )
    (message,) = [m for m in caplog.messages if "constant in the graph" in m]
    assert "sequence at input_ids[1]" in message
    assert "although the model takes other sizes" in message
    assert "for step in range(input_ids.shape[1]):" in message


def test_nothing_is_said_of_open_axes(caplog):
    model = torch.nn.Embedding(9, 4)
    DynamoExporter().export(model, {"input": torch.ones(2, 6, dtype=torch.int64)}, DynamoConfig(dynamic=True))
    assert not [m for m in caplog.messages if "constant in the graph" in m]
