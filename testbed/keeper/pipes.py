"""Reads lines from the pipe of another process, with a deadline."""

import os
import select
import time

_MOST = 1 << 16


class Lines:
    """The lines that arrive on a descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unread = b""

    def next(self, deadline: float) -> bytes:
        """The next line, without its end; TimeoutError at the deadline (monotonic), EOFError if no more will come."""
        while b"\n" not in self._unread:
            if not wait_for(self._fd, select.POLLIN, deadline):
                raise TimeoutError
            data = os.read(self._fd, _MOST)
            if not data:
                raise EOFError
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return line


def wait_for(fd: int, event: int, deadline: float) -> bool:
    """Wait for the event or the deadline. `poll`, as select allows only 1,024 descriptors."""
    waiting = select.poll()
    waiting.register(fd, event)
    return bool(waiting.poll(max(0.0, deadline - time.monotonic()) * 1000))
