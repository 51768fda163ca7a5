"""A SAM that was exported with one prompt takes any number of prompts, of any number of points."""

import torch
import transformers as tf

import transformers_exporters as te


def sam():
    torch.manual_seed(0)
    vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 40, "output_channels": 16}
    vision |= {"image_size": 64, "patch_size": 8, "window_size": 3, "global_attn_indexes": [1], "num_pos_feats": 8}
    prompt = {"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4, "image_embedding_size": 8}
    mask = {"hidden_size": 16, "mlp_dim": 24, "num_attention_heads": 4, "iou_head_hidden_dim": 16}
    model = tf.SamModel(
        tf.SamConfig(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=mask)
    ).eval()
    for parameter in model.parameters():  # so that a prompt matters
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def inputs(images, prompts, points):
    return {
        "pixel_values": torch.randn(images, 3, 64, 64),
        "input_points": torch.rand(images, prompts, points, 2) * 64,
        "input_labels": torch.randint(0, 2, (images, prompts, points)),
    }


def test_other_numbers_of_prompts_and_points():
    model = sam()
    exported = te.OnnxExporter().export_model(model, inputs(1, 1, 1), te.OnnxConfig(dynamic=True))
    for sizes in ((2, 3, 5), (1, 1, 2), (3, 2, 1)):
        given = inputs(*sizes)
        with torch.no_grad():
            wanted = model(**given)
        got = exported(**given)
        for name in ("iou_scores", "pred_masks"):
            scale = float(wanted[name].std())
            torch.testing.assert_close(got[name] / scale, wanted[name] / scale, rtol=1e-3, atol=1e-3)
