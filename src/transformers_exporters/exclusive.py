"""The one lock of this package: torch's tracing keeps state of the process, so one thread at a time may use it."""

import threading

#: Held while a thread patches, traces, lowers, saves or loads a program; re-entrant. Patches change torch and
#: transformers for the whole process, and torch keeps the mode in which it records symbolic sizes in one variable
#: (`torch.fx.experimental.proxy_tensor`): a program loaded in one thread would break a trace in another.
EXCLUSIVE = threading.RLock()
