"""Finds and ends the processes of labs by the mark in their environment, and by nothing else."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nodes.runtime.lifecycle import STOP_WITHIN_S
from testbed.errors import TestbedError
from testbed.places import MARK, ROLE_MARK, RUN_MARK, LabPlace

# Between SIGTERM and SIGKILL; the rest is for a slow interpreter.
STOP_GRACE_S = STOP_WITHIN_S + 1.0
_FORCED_S = 5.0
_BETWEEN_SCANS_S = 0.02
_MOST_ROUNDS = 50
_START_TIME = 19  # its place in /proc/<pid>/stat, counted from after the command's name
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that carries a lab's mark."""

    pid: int
    started: int  # clock ticks since boot: with the pid it names one process for ever
    lab: Path  # the lab's folder
    run: str
    role: str

    @property
    def age_s(self) -> float:
        """Seconds since it began."""
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / _TICKS)


def all_marked() -> list[Process]:
    """All living processes of all labs that this user may see, but not this one."""
    pids = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    found = (marked_process(pid) for pid in pids if pid != os.getpid())
    return [process for process in found if process is not None]


def marked(lab: LabPlace) -> list[Process]:
    """All living processes of the lab that this user may see, but not this one."""
    return [process for process in all_marked() if process.lab == lab.folder]


def marked_process(pid: int) -> Process | None:
    """The process, if it carries a mark. A zombie has no environment any more."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        if f"{MARK}=".encode() not in environment:
            return None
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    variables = dict(
        line.decode(errors="replace").split("=", 1)
        for line in reversed(environment.split(b"\0"))
        if b"=" in line
    )
    if MARK not in variables:
        return None
    started = int(stat.rpartition(")")[2].split()[_START_TIME])
    role, run = variables.get(ROLE_MARK, "process"), variables.get(RUN_MARK, "")
    return Process(pid, started, Path(variables[MARK]), run, role)


def end_marked(lab: LabPlace) -> list[str]:
    """End every process of the lab; return sentences on what was ended."""
    ended, refused = end_all(lambda: marked(lab))
    if refused:
        raise TestbedError(
            f"processes of lab {lab.name} belong to another user: {', '.join(map(str, refused))}",
            f"`sudo testbed down {lab.name}`",
        )
    return [f"ended {process.role} (process {process.pid})" for process in ended]


def end_all(find: Callable[[], list[Process]]) -> tuple[list[Process], list[int]]:
    """End what `find` finds: SIGTERM, then SIGKILL, until two scans in a row find nothing.

    Returns the ended processes, and the pids of those that this user may not end.
    """
    ended: dict[int, Process] = {}
    refused: set[int] = set()
    clean = 0
    for _ in range(_MOST_ROUNDS):
        present = [process for process in find() if process.pid not in refused]
        if present:
            clean = 0
            not_ours = end(present)
            refused |= not_ours
            ended |= {found.pid: found for found in present if found.pid not in not_ours}
        else:
            clean += 1
            if clean == 2:
                break
        time.sleep(_BETWEEN_SCANS_S)
    return list(ended.values()), sorted(refused)


def end(processes: Iterable[Process]) -> set[int]:
    """End exactly these processes; return the pids of those that this user may not end.

    Signals go through pidfds, and each process is checked again after its pidfd was opened: a reused pid is never hit.
    """
    handles: dict[int, int] = {}
    refused: set[int] = set()
    try:
        for process in processes:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(process.pid)
                if marked_process(process.pid) == process:
                    handles[handle] = process.pid
                else:
                    os.close(handle)
        for number, patience_s in ((signal.SIGTERM, STOP_GRACE_S), (signal.SIGKILL, _FORCED_S)):
            for handle, pid in handles.items():
                try:
                    _send(handle, number)
                except PermissionError:
                    refused.add(pid)
            waited_for = {handle for handle, pid in handles.items() if pid not in refused}
            if _all_gone(waited_for, patience_s):
                break
    finally:
        for handle in handles:
            os.close(handle)
    return refused


def _send(handle: int, number: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)
        if number is signal.SIGTERM:
            # So that a stopped process gets it, too.
            signal.pidfd_send_signal(handle, signal.SIGCONT)


def _all_gone(handles: set[int], patience_s: float) -> bool:
    """Wait for the ends of all, up to a limit; return whether all have ended."""
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
