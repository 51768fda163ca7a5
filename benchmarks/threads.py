"""The number of threads of a measured process, the same for every engine."""

from __future__ import annotations

import os
from typing import Any

import torch


def limit(threads: int) -> None:
    """Let this process compute with `threads` threads.

    PyTorch is told; ONNX Runtime takes the number for each session, and not every contestant hands it on, so that sessions are
    opened with it here; OpenVINO and ExecuTorch follow the cores that the process may use (Linux).
    """
    torch.set_num_threads(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    import onnxruntime

    open_session = onnxruntime.InferenceSession.__init__

    def opened(self: Any, path_or_bytes: Any, sess_options: Any = None, *args: Any, **kwargs: Any) -> None:
        sess_options = sess_options or onnxruntime.SessionOptions()
        sess_options.intra_op_num_threads = threads
        open_session(self, path_or_bytes, sess_options, *args, **kwargs)

    onnxruntime.InferenceSession.__init__ = opened
