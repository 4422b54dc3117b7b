"""The right to change a lab, held by several parts of one command at once."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from testbed.records import locked

PATIENCE_S = 5.0  # for another command that changes the lab at the same moment


class Hold:
    """The first who needs it takes the lab's lock, the last gives it back."""

    def __init__(self, lab: str) -> None:
        self._lab = lab
        self._guard = threading.Lock()
        self._users = 0
        self._lock: AbstractContextManager[None] | None = None

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Nobody but this command changes the lab meanwhile; InputError if somebody else does."""
        with self._guard:
            if self._users == 0:
                taken = locked(self._lab, patience_s=PATIENCE_S)
                taken.__enter__()
                self._lock = taken
            self._users += 1
        try:
            yield
        finally:
            with self._guard:
                self._users -= 1
                if self._users == 0 and self._lock is not None:
                    self._lock.__exit__(None, None, None)
                    self._lock = None
