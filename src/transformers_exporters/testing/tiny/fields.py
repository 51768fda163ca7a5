"""What a config field measures, told from its name, so that configs of models never seen before shrink too."""

from __future__ import annotations

import re

# The first pattern that matches decides. A name that none matches is left as it is.
_KINDS = (
    ("per_token", r"experts_per_tok"),
    ("groups", r"^num_expert_groups?$"),
    ("layers", r"block_repeats$"),
    ("keep", r"^(num_labels|chunk_size_feed_forward|type_vocab_size|.*sampling_rate|.*codebook_size|.*num_mel_bins)$"),
    ("keep", r"(kernel|stride|dilation|groups?_size|group_norm|ratio|_bins|merge|pool|tile|grid|quantile|crop|batch)"),
    ("token", r"(token_(id|ids|index)|suppress_tokens)$"),
    ("keep", r"^(num|n|max|min)_.*tokens?$|tokens_per_second"),
    ("image_tokens", r"tokens_per_(image|frame)|image_seq(uence)?_len(gth)?$"),
    ("vocabulary", r"vocab|^num_\w+_labels$"),
    ("half_width", r"^num_pos(ition)?_feats?$"),
    ("queries", r"^num_(object_)?queries$|^max_text_length$"),  # a step of a loop each
    ("period", r"_layer_(period|offset)$"),
    ("width", r"^(n|num)_(embd|filters|hidden)$|^n_(embed|model)$"),
    ("inner", r"^n_inner$"),
    ("per_token", r"experts?_per_tok|^(moe_)?top_?k$|moe_k$|moe_topk|num_selected_experts"),
    ("experts", r"^(moe_)?(num|n)_.*experts?(_.*)?$"),
    ("shared", r"shared_experts?$"),
    ("group_choice", r"^topk_group$"),
    ("groups", r"^n_group$"),
    ("dense_first", r"first_k_dense"),
    ("rope_dim", r"rope_head_dim"),
    (
        "head_dim",
        r"(^|_)d_head$|head_?(dim|size|width)s?$|headdim|^d_kv$|kv_channels|dim_head$|dim_per_head|channels_per_head",
    ),
    ("rotary", r"^rotary_(dim|ndims)$|^mrope_section$|(long|short)_factor$"),
    ("heads", r"(heads?|n_head|num_query_groups)(_per_layer|_per_stage)?$|^multi_query_group_num$"),
    ("layer_index", r"(indexes|indices|indexs|_idxs?|layer_ids?|feature_layers?|selected_layers)$|_only_layers$"),
    ("layer_index", r"^(full_attn_idxs|global_attn_layers|moe_layers|hybrid_layer_ids)"),
    ("layers", r"(^|_)(n_)?(layers?|blocks?)(_per_stage)?$|^(num_|n_)?(layers|blocks)|depths?$"),
    ("layers", r"layers?_num$|^num_.*layers?$|num_self_attends"),
    (
        "positions",
        r"^max_.*positions?(_embeddings)?|^n_positions$|^(max_)?(seq|source|target|text).*(len|length|positions)$",
    ),
    ("positions", r"position_embeddings?$|^n_ctx$|context_length$|^max_(seq|sequence)_len"),
    (
        "window",
        r"^(sliding_window|attention_window|local_attention|window_size|sliding_window_size|attention_window_size)$",
    ),
    ("image", r"(image|img|input|spec)_?size$"),
    ("keep", r"patch|window|chunk|block|sample|bucket|num_|^n_|max_|min_|expansion|expand$|queries|temporal|interval"),
    ("keep", r"d_conv$|conv_width|^feature_size$|^input_|hop|fft|scale|topk|step"),
    ("rank", r"rank$|d_state|state_size|state_dim|lora_"),
    ("inner", r"intermediate|ffn|mlp|d_ff|inner|feed_?forward|^dff$"),
    ("width", r"hidden|dim|width|size|channel|units|embd|embed|d_model|filters|features|planes"),
)
_COMPILED = [(kind, re.compile(pattern)) for kind, pattern in _KINDS]


def field_kind(name: str) -> str | None:
    """What the field measures: `"width"`, `"heads"`, `"layers"`, ...; None where it is left alone."""
    for kind, pattern in _COMPILED:
        if pattern.search(name):
            return None if kind == "keep" else kind
    return None
