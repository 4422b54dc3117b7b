"""The helper processes of a keeper (relay, capture, monitor), which answer questions as JSON lines on their pipes.

Each is one object also across the death of its process.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from testbed.capture.records import extent
from testbed.errors import TestbedError
from testbed.keeper.children import end, start
from testbed.keeper.pipes import Lines, wait_for
from testbed.links.namespaces import empty_network
from testbed.links.spec import Attachment
from testbed.links.wiring import NODE_IF, ns_path
from testbed.monitor.shared_counters import VARIABLE, make_shared_memory
from testbed.places import RunPlace

PATIENCE_S = 60.0
_TAIL = 400  # characters of its log that an error quotes


class WorkerError(TestbedError):
    """The worker refused, or is gone."""


class Worker:
    """One such process. `own_network`: in a network namespace of its own; scapy lists all interfaces when it is
    loaded, which would take 4 ms for each link of the core."""

    def __init__(
        self,
        name: str,
        module: str,
        marks: Mapping[str, str],
        log: Path,
        *arguments: str,
        own_network: bool = False,
    ) -> None:
        self.name = name
        self._log = log
        argv = [sys.executable, "-m", module, *arguments]
        with empty_network() if own_network else nullcontext() as ns_fd:
            self._process = start(argv, marks, log, ns_fd=ns_fd, talking=True)
        self._found_dead_at: float | None = None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._lines = Lines(self._output.fileno())
        os.set_blocking(self._input.fileno(), False)

    @property
    def running(self) -> bool:
        """Whether it still works."""
        alive = self._process.poll() is None
        if not alive and self._found_dead_at is None:
            self._found_dead_at = time.time()
        return alive

    @property
    def death_report(self) -> str:
        """A sentence on its death; nothing while it lives."""
        if self.running or self._found_dead_at is None:
            return ""
        when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(self._found_dead_at))
        return f"the {self.name} process had died at {when}{self._log_tail()}"

    def ask(self, question: dict[str, Any], patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """One question, one answer; WorkerError if it refuses, dies or takes too long."""
        deadline = time.monotonic() + patience_s
        if self._input.closed:
            raise self._gone()
        try:
            self._write(json.dumps(question).encode() + b"\n", deadline)
        except OSError as error:
            raise self._gone() from error
        answer: dict[str, Any] = json.loads(self._line(deadline))
        if not answer.get("ok"):
            raise WorkerError(f"{self.name}: {answer.get('error', 'refused without a reason')}")
        return answer

    def _write(self, data: bytes, deadline: float) -> None:
        """Piece by piece: a worker that does not read must not hold up its keeper."""
        fd = self._input.fileno()
        while data:
            if not wait_for(fd, select.POLLOUT, deadline):
                raise self._too_late()
            data = data[os.write(fd, data) :]

    def _line(self, deadline: float) -> bytes:
        try:
            return self._lines.next(deadline)
        except TimeoutError:
            raise self._too_late() from None
        except EOFError:
            raise self._gone() from None

    def _too_late(self) -> WorkerError:
        """It is ended: its late answer would be taken for that to the next question."""
        self.end()
        return WorkerError(f"{self.name} did not answer in time and was ended", f"see {self._log}")

    def _gone(self) -> WorkerError:
        return WorkerError(f"{self.name} has ended{self._log_tail()}", f"see {self._log}")

    def _log_tail(self) -> str:
        try:
            last = self._log.read_text(errors="replace").strip()[-_TAIL:]
        except OSError:
            last = ""
        return f": {last}" if last else ""

    def close_pipes(self) -> None:
        """It may go: its pipes are closed, and it ends by itself."""
        for pipe in (self._input, self._output):
            with suppress(OSError):  # what it did not read is lost with it
                pipe.close()

    def close_and_wait(self, patience_s: float = PATIENCE_S) -> None:
        """It may go, and is waited for; who takes too long is ended."""
        self.close_pipes()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
            return
        self.end()

    def end(self) -> None:
        """It goes now."""
        self.close_pipes()
        end([self._process])


# The capture of a lab as one thing, also across the death of its process.


CLOSING_S = 10.0  # for the sockets of a capture that has ended


class CaptureProcess:
    """Starts the capture process when it is first needed, and accounts for what it wrote."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._files: dict[str, Path] = {}  # by link
        self._deaths: list[str] = []  # of processes that were replaced
        self._closing: list[Worker] = []

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
            self._deaths.append(self._worker.death_report)
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
        died = worker.death_report
        try:
            answer = worker.ask({"do": "stop"})
        except WorkerError as error:
            links = {link: _written(path) for link, path in files.items()}
            answer = {"links": links, "error": died or error.message}
        worker.close_pipes()
        self._closing.append(worker)  # the kernel may take seconds to close hundreds of sockets
        found = {key: value for key, value in answer.items() if key != "ok"}
        errors = [*deaths, *([found["error"]] if "error" in found else [])]
        return {**found, "error": "; ".join(errors)} if errors else found

    def reap(self) -> None:
        """Collect processes that have ended, and take note of when."""
        self._closing = [worker for worker in self._closing if worker.running]
        state_of(self._worker)

    def close(self) -> None:
        """Wait for what is left: many threads close the sockets side by side; were they killed, the kernel would take
        10 ms for one after the other."""
        for worker in self._closing:
            worker.close_and_wait(CLOSING_S)
        self._closing.clear()


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


# The relay of a lab as one thing: its process is started when it is first needed, and anew after its death.


class RelayProcess:
    """The user-space links; they are gone when the process is."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None

    @property
    def state(self) -> str | None:
        """running, dead, or None if no link has needed it yet."""
        return state_of(self._worker)

    @property
    def serves(self) -> bool:
        """Whether its links carry anything."""
        return self.state == "running"

    def add(self, links: Sequence[Attachment]) -> None:
        """Both taps of each link, down; through a new process if there is none, or none any more."""
        if not self.serves:
            self.close()
            self._worker = self._make()
        orders = [
            {
                "link": link.spec.node,
                "node_ns": ns_path(link.ns_fd),
                "node_if": NODE_IF,
                "far_ns": ns_path(link.far_fd),
                "far_if": link.spec.far_if,
                "mtu": link.spec.mtu,
            }
            for link in links
        ]
        self._ask({"do": "add", "links": orders})

    def shape(self, links: Sequence[dict[str, Any]], seed: int | None) -> None:
        """Shapes as the keeper was told them; WorkerError if the links have gone with their process."""
        shapes = [{"link": link["node"], "up": link["up"], "down": link["down"]} for link in links]
        self._ask({"do": "shape", "links": shapes, "seed": seed})

    def remove(self, links: Sequence[Attachment]) -> None:
        """Taps go; those of a dead relay are left to whoever removes interfaces."""
        if links and self.serves:
            with suppress(WorkerError):
                self._ask({"do": "remove", "links": [link.spec.node for link in links]})

    def counters(self, links: bool, restart: bool) -> dict[str, Any]:
        """How it and its links fare, None if there is none, or none any more; then its lateness may start anew."""
        if self._worker is None or not self.serves:
            return {"relay": None, "links": None}
        found = self._worker.ask({"do": "counters", "links": links, "restart": restart})
        return {"relay": found["counters"], "links": found.get("links")}

    def reap(self) -> None:
        """Take note of its end."""
        state_of(self._worker)

    def close(self) -> None:
        """End it."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise WorkerError("there is no relay, and so no link")
        return self._worker.ask(question)


# The monitor of a lab as one thing: it watches the machine while links are captured.
#
# It is a guest. Should it fail to start, die or find no room, the lab goes on; the report then says for how long the
# machine was not watched.


MONITOR_PATIENCE_S = 2.0


class MonitorProcess:
    """Starts the monitor when it is first needed; `make` starts a process that writes to the file."""

    def __init__(self, make: Callable[[Path], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._memory: int | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Through which the keeper's processes find the memory that they share."""
        if self._memory is None:
            try:
                self._memory = make_shared_memory()
            except OSError:
                return {}
        return {VARIABLE: f"/proc/{os.getpid()}/fd/{self._memory}"}

    def begin(self, run: RunPlace) -> None:
        """Watch from now on, unless somebody does already."""
        if self._worker is not None and self._worker.running:
            return
        self._end_worker()
        with suppress(OSError):
            self._worker = self._make(run.machine)

    def stop(self) -> None:
        """The last row is written, and the process ends."""
        if self._worker is not None:
            with suppress(WorkerError, ValueError):
                self._worker.ask({"do": "stop"}, MONITOR_PATIENCE_S)
            self._end_worker()

    def close(self) -> None:
        """Also let go of the shared memory."""
        self.stop()
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None

    def reap(self) -> None:
        """Collect a process that has ended."""
        if self._worker is not None and not self._worker.running:
            self._end_worker()

    def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
