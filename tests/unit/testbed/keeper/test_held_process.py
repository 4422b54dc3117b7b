"""A held process is never mistaken for a later process with the same pid."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from testbed.keeper.children import UNKNOWN, HeldProcess


def forked(exit_code: int | None) -> int:
    """The pid of a child of this process that ends with the code, or waits for a signal."""
    pid = os.fork()
    if pid == 0:
        if exit_code is None:
            signal.pause()
        os._exit(exit_code or 0)
    return pid


@pytest.fixture
def waiting() -> Iterator[HeldProcess]:
    held = HeldProcess(forked(None), ours=True)
    yield held
    held.send_signal(signal.SIGKILL)
    held.wait()
    held.close()


def test_a_held_process_runs_until_it_is_killed(waiting: HeldProcess) -> None:
    assert waiting.poll() is None
    waiting.send_signal(signal.SIGKILL)
    waiting.wait()
    assert waiting.poll() == -signal.SIGKILL


def test_the_exit_code_is_collected_once_and_remembered() -> None:
    held = HeldProcess(forked(7), ours=True)
    held.wait()
    assert held.poll() == held.poll() == 7
    with pytest.raises(ChildProcessError):
        os.waitpid(held.pid, 0)
    held.close()


def test_a_signal_to_a_dead_process_has_no_effect(waiting: HeldProcess) -> None:
    waiting.send_signal(signal.SIGKILL)
    waiting.wait()
    waiting.send_signal(signal.SIGTERM)
    assert waiting.poll() == -signal.SIGKILL


def test_the_end_of_a_foreign_child_is_noticed_but_left_to_its_parent() -> None:
    theirs = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    held = HeldProcess(theirs.pid, ours=False)
    assert held.poll() is None
    assert theirs.stdin is not None
    theirs.stdin.close()
    held.wait()
    assert held.poll() == UNKNOWN
    assert theirs.wait() == 1, "input() met the end of the file"
    held.close()


def test_a_process_that_does_not_exist_cannot_be_held() -> None:
    pid = forked(0)
    os.waitpid(pid, 0)
    with pytest.raises(ProcessLookupError):
        HeldProcess(pid, ours=False)


def test_a_process_that_another_process_collects_has_ended_all_the_same() -> None:
    shell = ["sh", "-c", "sleep 600 & echo $!; wait"]
    with subprocess.Popen(shell, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        held = HeldProcess(int(parent.stdout.readline()), ours=True)
        try:
            held.send_signal(signal.SIGKILL)
            held.wait()
        finally:
            held.close()
    assert held.poll() == UNKNOWN
