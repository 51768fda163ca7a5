"""The gated delta rule (linear attention that overwrites its memory), chunk by chunk in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .scan import affine_scan, unit_lower_inverse

#: Steps to a chunk. Within a chunk the work is quadratic, between chunks it is a scan over matrices.
CHUNK = 32
#: Rounds of that scan: sequences of up to 32 * 2**13 = 262 144 steps.
ROUNDS = 13


class _Chunks(NamedTuple):
    """Tensors of shape [batch, chunks, heads, CHUNK, dim]; `decay` is the cumulated log decay within the chunk."""

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor
    beta: Tensor


def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    initial_state: Tensor | None = None,
    normalize: bool = False,
) -> tuple[Tensor, Tensor]:
    """`S_t = (I - beta_t k_t k_t^T) diag(exp(g_t)) S_(t-1) + beta_t k_t v_t^T` and `o_t = S_t^T q_t / sqrt(key_dim)`.

    Args:
        query: float [batch, time, key_heads, key_dim]; every key head serves `heads / key_heads` value heads.
        key: float [batch, time, key_heads, key_dim].
        value: float [batch, time, heads, value_dim].
        log_decay: float [batch, time, heads] (one decay a head) or [batch, time, heads, key_dim]; at most 0.
        beta: float [batch, time, heads].
        initial_state: float [batch, heads, key_dim, value_dim], or None for zeros.
        normalize: Divide queries and keys by their L2 norms first.

    Returns:
        The outputs [batch, time, heads, value_dim] in the dtype of `query`, and the state after the last step in fp32.
    """
    dtype, time = query.dtype, query.shape[1]
    query, key, value, log_decay, beta = (x.float() for x in (query, key, value, log_decay, beta))
    if normalize:
        query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (query, key))
    query = query * query.shape[-1] ** -0.5
    batch, heads, groups = value.shape[0], value.shape[2], value.shape[2] // key.shape[2]
    if groups > 1:
        query, key = query.repeat_interleave(groups, dim=2), key.repeat_interleave(groups, dim=2)
    if log_decay.dim() == 3:
        log_decay = log_decay.unsqueeze(-1)
    if initial_state is None:
        initial_state = value.new_zeros(batch, heads, key.shape[-1], value.shape[-1])
    cut = _Chunks(*(_cut(x, time) for x in (query, key, value, log_decay, beta.unsqueeze(-1))))
    cut = cut._replace(decay=cut.decay.cumsum(-2))
    outputs, state = _run(cut, initial_state.float())
    outputs = outputs.transpose(2, 3).reshape(batch, -1, heads, value.shape[-1])
    return outputs[:, :time].to(dtype), state


def _cut(x: Tensor, time: Any) -> Tensor:
    """[batch, time, heads, dim] to [batch, chunks, heads, CHUNK, dim]; a step of zeros leaves the state as it is."""
    # One chunk more than needed: a single chunk would be of size 1, which torch.export takes for a constant.
    chunks = (time + CHUNK - 1) // CHUNK + 1
    padded = F.pad(x, (0, 0, 0, 0, 0, chunks * CHUNK - time))
    return padded.reshape(x.shape[0], chunks, CHUNK, x.shape[2], x.shape[3]).transpose(2, 3)


def _run(cut: _Chunks, initial_state: Tensor) -> tuple[Tensor, Tensor]:
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=cut.key.device).tril()
    diagonal = torch.eye(CHUNK, dtype=torch.bool, device=cut.key.device)
    kept, total = cut.decay.exp(), cut.decay[..., -1:, :]
    weighted = cut.key * cut.beta
    # Within a chunk every new value depends on the ones before it: one unit lower triangular system for all of them.
    solve = unit_lower_inverse(_decayed_products(weighted, cut.key, cut.decay, lower & ~diagonal))
    values, reads = solve @ (cut.value * cut.beta), solve @ (weighted * kept)
    # Between chunks the state changes affinely.
    writes = (cut.key * (total - cut.decay).exp()).transpose(-1, -2)
    identity = torch.eye(cut.key.shape[-1], dtype=cut.key.dtype, device=cut.key.device)
    transition = identity * total.exp() - writes @ reads
    states = affine_scan(transition, writes @ values, initial_state, ROUNDS)
    before, final = states[:, :-1], states[:, -1]
    attention = _decayed_products(cut.query, cut.key, cut.decay, lower)
    return (cut.query * kept) @ before + attention @ (values - reads @ before), final


def _decayed_products(left: Tensor, right: Tensor, decay: Tensor, mask: Tensor) -> Tensor:
    """`sum_d left_i right_j exp(decay_i - decay_j)` where the mask allows, else 0: [..., CHUNK, CHUNK].

    The difference is taken before `exp`, and only for `j <= i`, so nothing overflows.
    """
    if decay.shape[-1] == 1:
        between = (decay - decay.transpose(-1, -2)).masked_fill(~mask, float("-inf"))
        return (left @ right.transpose(-1, -2)) * between.exp()
    between = (decay.unsqueeze(-2) - decay.unsqueeze(-3)).masked_fill(~mask.unsqueeze(-1), float("-inf"))
    return (left.unsqueeze(-2) * right.unsqueeze(-3) * between.exp()).sum(-1)
