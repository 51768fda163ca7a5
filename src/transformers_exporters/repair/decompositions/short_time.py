"""Short-time Fourier transforms: windows of a signal, and one transform of all of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """x: [..., time] -> complex [..., frequencies, frames], or reals with a last axis of size 2.

    Raises:
        NotImplementedError: For windows that are aligned to their own length.
    """
    if align_to_window:
        raise NotImplementedError("frames aligned to the window")
    frames = x.unfold(-1, n_fft, hop_length or n_fft // 4) * _padded(window, win_length, n_fft, x.dtype)
    scale = "ortho" if normalized else "backward"
    whole = onesided is False or x.is_complex()
    found = (torch.fft.fft if whole else torch.fft.rfft)(frames, dim=-1, norm=scale).transpose(-1, -2)
    return found if return_complex else torch.view_as_real(found)


def stft_centered(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    *options: Any,
) -> Tensor:
    """`stft` whose frames have their middle, not their start, at multiples of the step."""
    if center:
        whole = x.reshape(1, -1, x.shape[-1])  # reflection wants an axis of channels
        padded = F.pad(whole, [n_fft // 2, n_fft // 2], mode=pad_mode)
        x = padded.reshape(*x.shape[:-1], padded.shape[-1])
    return stft(x, n_fft, hop_length, win_length, window, *options)


def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """x: complex [..., frequencies, frames] -> [..., time]: frames are added where they overlap, over the windows' squares.

    Raises:
        NotImplementedError: For signals that are complex.
    """
    if return_complex or onesided is False:
        raise NotImplementedError("an inverse to complex signals")
    step = hop_length or n_fft // 4
    shape = _padded(window, win_length, n_fft, x.real.dtype)
    scale = "ortho" if normalized else "backward"
    frames = torch.fft.irfft(x.transpose(-1, -2), n=n_fft, dim=-1, norm=scale) * shape
    count = frames.shape[-2]
    columns = frames.reshape(-1, count, n_fft).transpose(1, 2)
    size: tuple[int, Any] = (1, (count - 1) * step + n_fft)
    signal = F.fold(columns, size, (1, n_fft), stride=(1, step))
    squares = (shape * shape).unsqueeze(1).expand(n_fft, count).unsqueeze(0)
    weight = F.fold(squares, size, (1, n_fft), stride=(1, step))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else size[1] - (n_fft // 2 if center else 0)
    signal, weight = signal[:, 0, 0, start:end], weight[:, 0, 0, start:end]
    return (signal / weight).reshape(*x.shape[:-2], signal.shape[-1])


def _padded(window: Tensor | None, win_length: int | None, n_fft: int, dtype: torch.dtype) -> Tensor:
    """The window in the middle of a frame: [n_fft]."""
    size = win_length or n_fft
    given = window if window is not None else torch.ones([size], dtype=dtype)
    before = (n_fft - size) // 2
    return F.pad(given, [before, n_fft - size - before]) if size < n_fft else given


RULES = {"aten.stft.default": stft, "aten.stft.center": stft_centered, "aten.istft.default": istft}
