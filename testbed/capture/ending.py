"""How a capture process is told to end."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def termination() -> Iterator[int]:
    """A descriptor that becomes readable on SIGTERM. Ctrl-C is left to whoever started the lab."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)
