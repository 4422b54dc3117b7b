"""Lines from the pipe of another process, with patience that ends."""

import os
import select
import time

_MOST = 1 << 16


class Lines:
    """What somebody writes to a descriptor, line by line."""

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
    """Until the event, or the deadline; `poll`, because descriptors may go beyond select's 1,024."""
    waiting = select.poll()
    waiting.register(fd, event)
    return bool(waiting.poll(max(0.0, deadline - time.monotonic()) * 1000))
