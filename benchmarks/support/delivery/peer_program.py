"""Shared parts of the peers' programs: they wait for the start, send by the clock, and record arrivals.

Standard library only. The benchmark writes `timeline.json` and `start` into the peer's folder, the programs write
`ready` and `received.jsonl`. A payload begins with the message's number.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

LOOK_S = 0.02
Send = Callable[[bytes, bool], None]  # payload, urgent


def payload(number: int, urgent: bool, size: int) -> bytes:
    """A payload filled as in the thesis: with 1s or 2s."""
    return f"{number} ".encode().ljust(size, b"1" if urgent else b"2")


def number_of(data: bytes) -> int:
    """The message number in a payload."""
    return int(data[:20].split(b" ", 1)[0])


def ready(folder: Path, role: str) -> None:
    """Report to the benchmark that this program is ready."""
    (folder / f"{role}.ready").touch()


class Received:
    """Records each arrival at once."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "received.jsonl").open("a", buffering=1)

    def note(self, data: bytes) -> None:
        """Record a complete message."""
        at_ns = time.time_ns()
        self._file.write(json.dumps({"number": number_of(data), "at_ns": at_ns}) + "\n")


def play(folder: Path, send: Send) -> None:
    """Send every message when it is due. Urgent and routine messages have a thread each, so that neither waits."""
    timeline = json.loads((folder / "timeline.json").read_text())
    numbered = list(enumerate(timeline))
    while not (start := folder / "start").exists():
        time.sleep(LOOK_S)
    start_ns = int(start.read_text())
    threads = [
        threading.Thread(target=_play, args=(start_ns, mine, send))
        for urgent in (True, False)
        if (mine := [one for one in numbered if one[1]["urgent"] is urgent])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _play(start_ns: int, messages: Iterable[tuple[int, dict[str, int]]], send: Send) -> None:
    for number, due in messages:
        urgent = bool(due["urgent"])
        data = payload(number, urgent, due["size"])
        time.sleep(max(0, start_ns + due["at_ns"] - time.time_ns()) / 1e9)
        send(data, urgent)
