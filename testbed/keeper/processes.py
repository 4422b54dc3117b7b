"""Finding and ending the processes of a lab by the mark in their environment, and by nothing else."""

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nodes.runtime.lifecycle import STOP_WITHIN_S
from testbed.places import MARK, ROLE_MARK, LabPlace

POLITE_S = STOP_WITHIN_S + 1.0  # between SIGTERM and SIGKILL; the rest is for a slow interpreter
_FORCED_S = 5.0
_BETWEEN_SCANS_S = 0.02
_MOST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Process:
    """A process that carries a lab's mark."""

    pid: int
    role: str


def marked(lab: LabPlace) -> list[Process]:
    """All living processes of the lab that this user may see, but not this one."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            role = _role(int(entry.name), lab)
            if role is not None:
                found.append(Process(int(entry.name), role))
    return found


def _role(pid: int, lab: LabPlace) -> str | None:
    """The process's role in the lab; None if it is none of the lab's. A zombie has no environment any more."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    if f"{MARK}={lab.folder}".encode() not in environment:
        return None
    prefix = f"{ROLE_MARK}=".encode()
    roles = [line[len(prefix) :].decode() for line in environment if line.startswith(prefix)]
    return roles[0] if roles else "process"


def end_marked(lab: LabPlace) -> list[str]:
    """End every process of the lab: asked first, forced then, until two looks in a row find none.

    What was ended, as sentences.
    """
    ended: dict[int, Process] = {}
    clean = 0
    for _ in range(_MOST_ROUNDS):
        present = marked(lab)
        if present:
            clean = 0
            ended.update({process.pid: process for process in present})
            _end(present, lab)
        else:
            clean += 1
            if clean == 2:
                break
        time.sleep(_BETWEEN_SCANS_S)
    return [f"ended {process.role} (process {process.pid})" for process in ended.values()]


def _end(processes: list[Process], lab: LabPlace) -> None:
    """Signals go through pidfds, opened before the mark is looked at again: a reused number is never hit."""
    handles: dict[int, int] = {}
    try:
        for process in processes:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(process.pid)
                if _role(process.pid, lab) is None:
                    os.close(handle)
                else:
                    handles[handle] = process.pid
        for number, patience_s in ((signal.SIGTERM, POLITE_S), (signal.SIGKILL, _FORCED_S)):
            for handle in handles:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
                    if number is signal.SIGTERM:
                        signal.pidfd_send_signal(handle, signal.SIGCONT)  # a stopped one hears too
            if _all_gone(set(handles), patience_s):
                return
    finally:
        for handle in handles:
            os.close(handle)


def _all_gone(handles: set[int], patience_s: float) -> bool:
    """Whether all have ended; waits for it, but not for ever."""
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    deadline = time.monotonic() + patience_s
    left = set(handles)
    while left:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        for handle, _ in waiting.poll(remaining * 1000):
            waiting.unregister(handle)
            left.discard(handle)
    return True
