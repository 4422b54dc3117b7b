"""Opening the nodes' gates through their control sockets, many at a time."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.control import ControlError, request

_PAUSE_S = 0.05
_LOOK_EVERY_S = 1.0  # how often it is checked whether the waited-for still live

Lives = Callable[[], frozenset[str]]


def open_gates(
    controls: dict[str, Path], lives: Lives, patience_s: float, done: Callable[[str], None]
) -> dict[str, str]:
    """Say `go` to each node as soon as it listens; what went wrong, by node.

    `lives` tells which nodes still run: nobody waits for the dead.
    """
    waiting = dict(controls)
    failed: dict[str, str] = {}
    now = time.monotonic()
    deadline, look_at = now + patience_s, now + _LOOK_EVERY_S
    while waiting:
        for name in _gone_through(waiting):
            del waiting[name]
            done(name)
        now = time.monotonic()
        if waiting and now >= look_at:
            look_at = now + _LOOK_EVERY_S
            alive = lives()
            for name in [name for name in waiting if name not in alive]:
                del waiting[name]
                failed[name] = "it has ended"
        if waiting and now > deadline:
            failed.update(dict.fromkeys(waiting, f"no answer after {patience_s:.0f} s"))
            break
        if waiting:
            time.sleep(_PAUSE_S)
    return failed


def _gone_through(waiting: dict[str, Path]) -> list[str]:
    return [name for name, control in waiting.items() if _says(control, "go")]


def _says(control: Path, do: str) -> bool:
    try:
        request(control, {"do": do})
    except ControlError:
        return False
    return True


def past_their_gate(controls: Iterable[tuple[str, Path]]) -> frozenset[str]:
    """The nodes that run."""
    return frozenset(name for name, control in controls if _state(control) == "running")


def _state(control: Path) -> str:
    try:
        return str(request(control, {"do": "status"}).get("state"))
    except ControlError:
        return "gone"
