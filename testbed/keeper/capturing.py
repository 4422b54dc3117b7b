"""The capture of a lab as one thing, also across the death of its process."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from testbed.capture.records import extent
from testbed.errors import TestbedError
from testbed.keeper.workers import Worker, WorkerError

CLOSING_S = 10.0  # for the sockets of a capture that has ended


class Capturing:
    """Starts the capture process when it is first needed, and accounts for what it wrote."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._files: dict[str, Path] = {}  # by link
        self._deaths: list[str] = []  # of processes that were replaced
        self._dismissed: list[Worker] = []

    @property
    def state(self) -> str | None:
        """running, dead, or None if nobody has asked for a capture."""
        return state_of(self._worker)

    def expect(self) -> None:
        """Links will come: to load scapy takes a while, in which other things can be done."""
        if self._worker is None:
            self._worker = self._make()

    def listen(self, orders: Sequence[dict[str, Any]]) -> None:
        """Hear these links, through a new process if the last one has died."""
        if self._worker is not None and not self._worker.running:
            self._deaths.append(self._worker.obituary)
            self._worker.end()
            self._worker = None
        self.expect()
        assert self._worker is not None
        self._worker.ask({"do": "add", "links": list(orders)})
        self._files |= {order["link"]: Path(order["path"]) for order in orders}

    def stop(self) -> dict[str, Any]:
        """Counts per link, and as `error` what went wrong; if the process is dead, what its files hold."""
        worker, self._worker = self._worker, None
        if worker is None:
            return {"links": {}}
        deaths, self._deaths = self._deaths, []
        files, self._files = self._files, {}
        died = worker.obituary
        try:
            answer = worker.ask({"do": "stop"})
        except WorkerError as error:
            links = {link: _written(path) for link, path in files.items()}
            answer = {"links": links, "error": died or error.message}
        worker.dismiss()
        self._dismissed.append(worker)  # the kernel may take seconds to close hundreds of sockets
        found = {key: value for key, value in answer.items() if key != "ok"}
        errors = [*deaths, *([found["error"]] if "error" in found else [])]
        return {**found, "error": "; ".join(errors)} if errors else found

    def reap(self) -> None:
        """Collect processes that have ended, and take note of when."""
        self._dismissed = [worker for worker in self._dismissed if worker.running]
        state_of(self._worker)

    def close(self) -> None:
        """Wait for what is left: many threads close the sockets side by side; were they killed, the kernel would take
        10 ms for one after the other."""
        for worker in self._dismissed:
            worker.let_go(CLOSING_S)
        self._dismissed.clear()


def state_of(worker: Worker | None) -> str | None:
    """running, dead, or None if there is none."""
    if worker is None:
        return None
    return "running" if worker.running else "dead"


def _written(path: Path) -> dict[str, int]:
    """What a file holds of a link. How much was lost when its writer died, nobody knows."""
    try:
        whole = extent(path)
    except (OSError, TestbedError):
        return {"packets": 0, "bytes": 0, "dropped": 0}
    return {"packets": whole.packets, "bytes": whole.on_the_wire, "dropped": 0}
