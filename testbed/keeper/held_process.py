"""A process that the keeper holds by a descriptor: whoever gets its number later is never mistaken for it."""

import os
import select
import signal
from contextlib import suppress

UNKNOWN = 255  # the exit code of somebody else's child


class HeldProcess:
    """As much of a `subprocess.Popen` as the keeper needs, for a process that it did not start itself.

    `ours`: it has become the keeper's child, so the keeper must collect it.
    """

    def __init__(self, pid: int, *, ours: bool) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ours = ours
        self._fd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it lives."""
        if self.returncode is None:
            self._look(0)
        return self.returncode

    def wait(self) -> None:
        """Until it has ended."""
        while self.returncode is None:
            self._look(None)

    def send_signal(self, number: int) -> None:
        """Gone is fine."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, number)

    def close(self) -> None:
        """Hold it no longer."""
        os.close(self._fd)

    def _look(self, patience_ms: int | None) -> None:
        end = select.poll()
        end.register(self._fd, select.POLLIN)
        if not end.poll(patience_ms):
            return
        if not self._ours:
            self.returncode = UNKNOWN
            return
        try:
            found = os.waitid(os.P_PIDFD, self._fd, os.WEXITED)
        except (
            ChildProcessError
        ):  # somebody else has collected it: no reason for the keeper to fall
            self.returncode = UNKNOWN
            return
        assert found is not None
        exited = found.si_code == os.CLD_EXITED
        self.returncode = found.si_status if exited else -found.si_status
