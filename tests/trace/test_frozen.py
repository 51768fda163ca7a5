"""`trace.frozen`: what is said of an axis that came out constant."""

import torch

from transformers_exporters import DynamoConfig, DynamoExporter, ExportedModel


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


class Weighed(torch.nn.Module):
    """Computes with a number of the width that a trace does not see."""

    def forward(self, pixel_values):
        width = pixel_values.shape[-1]
        return pixel_values * float((getattr(width, "node", None) and width.node.hint) or width)


class Doubled(torch.nn.Module):
    """Takes another way from a hundred columns on."""

    def forward(self, pixel_values):
        return pixel_values * 2 if pixel_values.shape[-1] > 100 else pixel_values


def images(model: torch.nn.Module) -> ExportedModel:
    return DynamoExporter().export_model(
        model.eval(), {"pixel_values": torch.randn(2, 3, 56, 64)}, DynamoConfig(dynamic=True)
    )


def test_an_image_size_that_is_part_of_the_results_is_said_to_be_constant(caplog):
    exported = images(Weighed())
    assert exported["model"].spec.inputs[0].shape[2:] == (56, 64)
    (message,) = [m for m in caplog.messages if "constant in the graph" in m]
    assert "height=56, width=64" in message and "export once for each size" in message


def test_an_image_size_that_ends_at_a_branch_stays_free_up_to_there():
    exported, model = images(Doubled()), Doubled()
    assert exported["model"].spec.inputs[0].shape[2:] == ("height", "width")
    for width in (20, 100):
        values = torch.randn(1, 3, 40, width)
        torch.testing.assert_close(exported(pixel_values=values), model(values))


class Branch(torch.nn.Module):
    """Takes another way from a hundred tokens on."""

    def forward(self, inputs_embeds):
        return inputs_embeds * 2 if inputs_embeds.shape[1] > 100 else inputs_embeds


def test_a_branch_that_ends_an_axis_is_named(caplog):
    inputs = {"inputs_embeds": torch.randn(2, 6, 3)}
    exported = DynamoExporter().export_model(Branch().eval(), inputs, DynamoConfig(dynamic=True))
    assert exported["model"].spec.axes["sequence"].maximum == 100
    (message,) = [m for m in caplog.messages if "takes other sizes" in m]
    assert "sequence from 1 to 100" in message
    assert "if inputs_embeds.shape[1] > 100" in message
