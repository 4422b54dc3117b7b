"""The worker processes of a keeper (relay, capture, monitor), which answer questions as JSON lines on their pipes.

Relay, capture and monitor are one object each, also if their process dies and is started again.
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
    """The worker refused a question, or has ended."""


class Worker:
    """One worker process. `own_network`: in a network namespace of its own, as scapy lists all interfaces when it is
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
        argv = [sys.executable, "-P", "-m", module, *arguments]
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
        """Whether the process runs."""
        alive = self._process.poll() is None
        if not alive and self._found_dead_at is None:
            self._found_dead_at = time.time()
        return alive

    @property
    def death_report(self) -> str:
        """A sentence on its death; empty while it runs."""
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
        """Write piece by piece: a worker that does not read must not block its keeper."""
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
        """End the worker: its late answer would be taken for the answer to the next question."""
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
        """Close its pipes, so that it ends by itself."""
        for pipe in (self._input, self._output):
            with suppress(OSError):  # data that it has not read is lost
                pipe.close()

    def close_and_wait(self, patience_s: float = PATIENCE_S) -> None:
        """Close its pipes and wait for its end; kill it if it takes too long."""
        self.close_pipes()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
            return
        self.end()

    def end(self) -> None:
        """Kill it now."""
        self.close_pipes()
        end([self._process])


CLOSING_S = 10.0  # for the sockets of a capture that has ended


class CaptureProcess:
    """The capture of a lab: starts its process when it is first needed, and counts what it wrote."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._files: dict[str, Path] = {}  # by link
        self._deaths: list[str] = []  # of processes that were replaced
        self._closing: list[Worker] = []

    @property
    def state(self) -> str | None:
        """running, dead, or None without a capture."""
        return state_of(self._worker)

    def expect(self) -> None:
        """Start the process: it takes a while to load scapy, in which other things can be done."""
        if self._worker is None:
            self._worker = self._make()

    def listen(self, orders: Sequence[dict[str, Any]]) -> None:
        """Capture these links, with a new process if the last one has died."""
        if self._worker is not None and not self._worker.running:
            self._deaths.append(self._worker.death_report)
            self._worker.end()
            self._worker = None
        self.expect()
        assert self._worker is not None
        self._worker.ask({"do": "add", "links": list(orders)})
        self._files |= {order["link"]: Path(order["path"]) for order in orders}

    def stop(self) -> dict[str, Any]:
        """End the capture: counts per link, and errors as `error`; from the files if the process is dead."""
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
        """Reap processes that have ended, and note the time."""
        self._closing = [worker for worker in self._closing if worker.running]
        state_of(self._worker)

    def close(self) -> None:
        """Wait for processes that still close their sockets, in many threads; after a kill the kernel would close them
        one after the other, in 10 ms each."""
        for worker in self._closing:
            worker.close_and_wait(CLOSING_S)
        self._closing.clear()


def state_of(worker: Worker | None) -> str | None:
    """running, dead, or None if there is none."""
    if worker is None:
        return None
    return "running" if worker.running else "dead"


def _written(path: Path) -> dict[str, int]:
    """Counts of a capture file. Losses at the death of its writer are unknown."""
    try:
        whole = extent(path)
    except (OSError, TestbedError):
        return {"packets": 0, "bytes": 0, "dropped": 0}
    return {"packets": whole.packets, "bytes": whole.on_the_wire, "dropped": 0}


class RelayProcess:
    """The relay of a lab, which serves its user-space links. They vanish with its process."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None

    @property
    def state(self) -> str | None:
        """running, dead, or None if no link has needed it yet."""
        return state_of(self._worker)

    @property
    def serves(self) -> bool:
        """Whether its process runs, so that its links carry packets."""
        return self.state == "running"

    def add(self, links: Sequence[Attachment]) -> None:
        """Make both taps of each link, down; start the process if it does not run."""
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
        """Shape links, as in the keeper's protocol; WorkerError if the process has ended."""
        shapes = [{"link": link["node"], "up": link["up"], "down": link["down"]} for link in links]
        self._ask({"do": "shape", "links": shapes, "seed": seed})

    def remove(self, links: Sequence[Attachment]) -> None:
        """Remove taps; those of a dead relay are removed with the interfaces."""
        if links and self.serves:
            with suppress(WorkerError):
                self._ask({"do": "remove", "links": [link.spec.node for link in links]})

    def counters(self, links: bool, restart: bool) -> dict[str, Any]:
        """Counters of the relay and its links, None without a live relay; `restart` counts lateness anew."""
        if self._worker is None or not self.serves:
            return {"relay": None, "links": None}
        found = self._worker.ask({"do": "counters", "links": links, "restart": restart})
        return {"relay": found["counters"], "links": found.get("links")}

    def reap(self) -> None:
        """Note its end."""
        state_of(self._worker)

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise WorkerError("there is no relay, and so no link")
        return self._worker.ask(question)


MONITOR_PATIENCE_S = 2.0


class MonitorProcess:
    """The monitor of a lab, which samples the machine while links are captured; `make` starts its process.

    The lab goes on without it if it fails to start, dies or finds the disk full. The report then says for how long the
    machine was not sampled.
    """

    def __init__(self, make: Callable[[Path], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._memory: int | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variable by which the keeper's processes find their shared memory."""
        if self._memory is None:
            try:
                self._memory = make_shared_memory()
            except OSError:
                return {}
        return {VARIABLE: f"/proc/{os.getpid()}/fd/{self._memory}"}

    def begin(self, run: RunPlace) -> None:
        """Start the monitor, unless it runs."""
        if self._worker is not None and self._worker.running:
            return
        self._end_worker()
        with suppress(OSError):
            self._worker = self._make(run.machine)

    def stop(self) -> None:
        """Let it write the last row, and end it."""
        if self._worker is not None:
            with suppress(WorkerError, ValueError):
                self._worker.ask({"do": "stop"}, MONITOR_PATIENCE_S)
            self._end_worker()

    def close(self) -> None:
        """Stop it, and close the shared memory."""
        self.stop()
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None

    def reap(self) -> None:
        """Reap a process that has ended."""
        if self._worker is not None and not self._worker.running:
            self._end_worker()

    def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
