"""The keeper's child processes: started with the lab's mark in their namespace; the kernel ends them with the keeper.

The keeper holds a process by a pidfd, so a later process with the same pid is never mistaken for it.
"""

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from testbed.syscalls import CLONE_NEWNET, die_with_parent, setns

UNKNOWN = 255  # the exit code of another process's child


class HeldProcess:
    """A process that the keeper did not start itself, held by a pidfd, with the needed part of `subprocess.Popen`.

    `ours`: the process has become the keeper's child, so the keeper must reap it.
    """

    def __init__(self, pid: int, *, ours: bool) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ours = ours
        self._fd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """The exit code, or minus the signal that ended the process; None while it runs."""
        if self.returncode is None:
            self._look(0)
        return self.returncode

    def wait(self) -> None:
        """Wait until the process has ended."""
        while self.returncode is None:
            self._look(None)

    def send_signal(self, number: int) -> None:
        """Send a signal; a process that has ended is no error."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, number)

    def close(self) -> None:
        """Close the pidfd."""
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
        except ChildProcessError:  # already reaped elsewhere: no reason to fail
            self.returncode = UNKNOWN
            return
        assert found is not None
        exited = found.si_code == os.CLD_EXITED
        self.returncode = found.si_status if exited else -found.si_status


def start(
    argv: Sequence[str],
    marks: Mapping[str, str],
    stderr: Path,
    *,
    ns_fd: int | None = None,
    talking: bool = False,
) -> "subprocess.Popen[bytes]":
    """Start a child in the namespace (None: the keeper's own). `talking`: with pipes; else it writes to its log."""
    keeper = os.getpid()

    def first_instructions() -> None:
        die_with_parent(keeper)
        for number in (signal.SIGINT, signal.SIGHUP):  # which the keeper ignores
            signal.signal(number, signal.SIG_DFL)
        if ns_fd is not None:
            setns(ns_fd, CLONE_NEWNET)

    stderr.parent.mkdir(parents=True, exist_ok=True)
    with stderr.open("ab") as log:
        pipe_or_null = subprocess.PIPE if talking else subprocess.DEVNULL
        output: int | IO[bytes] = subprocess.PIPE if talking else log
        return subprocess.Popen(
            argv,
            stdin=pipe_or_null,
            stdout=output,
            stderr=log,
            env={**os.environ, **marks},
            start_new_session=True,
            preexec_fn=first_instructions,  # noqa: PLW1509 - the keeper has one thread
        )


Child = subprocess.Popen[bytes] | HeldProcess


def send_signal(child: Child, number: int) -> None:
    """Signal the child and, if the keeper started it, its process group; a child that has ended is no error."""
    if isinstance(child, HeldProcess):
        child.send_signal(number)
    elif child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)


def end(children: Sequence[Child | None]) -> None:
    """Kill the children and reap them."""
    ending = [child for child in children if child is not None]
    for child in ending:
        send_signal(child, signal.SIGKILL)
    for child in ending:
        child.wait()
