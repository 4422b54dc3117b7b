"""Starting the keeper's children: marked, in their namespace, and ended by the kernel should the keeper die."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from testbed.keeper.held_process import HeldProcess
from testbed.links.system import CLONE_NEWNET, die_with_parent, setns


def start(
    argv: Sequence[str],
    marks: Mapping[str, str],
    stderr: Path,
    *,
    ns_fd: int | None = None,
    talking: bool = False,
) -> "subprocess.Popen[bytes]":
    """A child in the namespace (None: the keeper's own). Talking ones have pipes, the others write to their log."""
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
    """To the child and, if the keeper started it, what that started; gone is fine."""
    if isinstance(child, HeldProcess):
        child.send_signal(number)
    elif child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)


def end(children: Sequence[Child | None]) -> None:
    """Without mercy, and without leaving zombies."""
    ending = [child for child in children if child is not None]
    for child in ending:
        send_signal(child, signal.SIGKILL)
    for child in ending:
        child.wait()
