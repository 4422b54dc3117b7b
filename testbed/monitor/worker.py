"""`python -m testbed.monitor.worker FILE`: watches the machine and appends a row a second to the file.

    {"do": "stats"}     rows written so far; `error`, if some could not be
    {"do": "stop"}      the last row, the same answer, the end

One JSON object a line on standard input, one answer a line on standard output; the end of standard input ends it, too.
It has the priority of any process, so that its wake-ups meet the delays that the nodes meet.
"""

import json
import os
import select
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.monitor.proc import find_limit
from testbed.monitor.sampler import Sampler, row
from testbed.monitor.shared_counters import open_shared_counters
from testbed.syscalls import disable_timer_slack

# Wake-up latency of an ordinary process: it asks to be woken at fixed times and measures when it really was.
#
# A process that is held up for 100 ms misses ten of its times, and each of them counts: otherwise one long delay would
# be one sample among hundreds, although a tenth of a second's messages would have had to wait.


MOST_MISSED = 6000  # times; what was held up longer counts as this


@dataclass(slots=True)
class WakeupTimer:
    """Wake-up times at a fixed distance; the clock is an argument."""

    due_ns: int  # when it wants to be woken next
    period_ns: int

    def on_wakeup(self, now_ns: int) -> list[int]:
        """The delays of all times that have passed, the oldest first; then it sleeps until the next."""
        passed = (now_ns - self.due_ns) // self.period_ns + 1
        if passed <= 0:
            return []
        oldest = now_ns - self.due_ns
        self.due_ns += passed * self.period_ns
        return [oldest - missed * self.period_ns for missed in range(min(passed, MOST_MISSED))]


PERIOD_NS = 10_000_000  # between two wake-ups
ROW_NS = 1_000_000_000
_INPUT, _OUTPUT = 0, 1


class RowFile:
    """Rows in a file. A full disk costs rows, never the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._torn = False  # the last row is not whole
        self.rows = 0
        self.error = ""
        self._file: int | None = None
        self._open()

    def append(self, values: dict[str, Any]) -> None:
        """Append one row, if the disk takes it."""
        line = json.dumps(values).encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        self._open()
        if self._file is None:
            return
        try:
            written = os.write(self._file, line)
        except OSError as error:
            self.error = f"cannot write {self._path}: {error.strerror}"
            return
        self._torn = written < len(line)
        if self._torn:
            self.error = f"cannot write {self._path}: no room"
        else:
            self.rows += 1

    def _open(self) -> None:
        if self._file is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            try:
                self._file = os.open(self._path, flags, 0o644)
            except OSError as error:
                self.error = f"cannot write {self._path}: {error.strerror}"


class Worker:
    """Sleeps, samples the machine, writes rows and answers requests."""

    def __init__(self, path: Path) -> None:
        limit = find_limit(len(os.sched_getaffinity(0)))
        self._limit_cores = limit.cores if limit else None
        self._file = RowFile(path)
        self._sampler = Sampler(open_shared_counters(), limit)
        self._before = self._sampler.sample()
        self._delays: list[int] = []
        self._partial_line = b""
        self._ended = False
        self._questions = select.poll()
        self._questions.register(_INPUT, select.POLLIN)

    def run(self) -> None:
        """Run until a stop request or the end of standard input."""
        now = time.monotonic_ns()
        wakeups = WakeupTimer(now + PERIOD_NS, PERIOD_NS)
        row_due = now + ROW_NS
        while not self._ended:
            time.sleep(max(0, wakeups.due_ns - time.monotonic_ns()) / 1e9)
            now = time.monotonic_ns()
            self._delays += wakeups.on_wakeup(now)
            if now >= row_due:
                self._write_row()
                row_due += ((now - row_due) // ROW_NS + 1) * ROW_NS
            if self._questions.poll(0):
                self._read_requests()

    def _write_row(self) -> None:
        after = self._sampler.sample()
        self._file.append(row(self._before, after, self._delays, self._limit_cores))
        self._before, self._delays = after, []

    def _read_requests(self) -> None:
        data = os.read(_INPUT, 1 << 16)
        if not data:
            self._end()
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        for line in lines:
            answer = json.dumps(self._answer(line)).encode() + b"\n"
            try:
                os.write(_OUTPUT, answer)
            except BrokenPipeError:
                self._end()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            question = json.loads(line)
        except ValueError as error:
            return {"ok": False, "error": f"not a line of JSON: {error}"}
        match question:
            case {"do": "stats"}:
                return self._statistics()
            case {"do": "stop"}:
                self._end()
                return self._statistics()
        return {"ok": False, "error": f"unknown question {line.decode(errors='replace')!r}"}

    def _statistics(self) -> dict[str, Any]:
        trouble = {"error": self._file.error} if self._file.error else {}
        return {"ok": True, "rows": self._file.rows, **trouble}

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._write_row()


def main(arguments: list[str]) -> int:
    """Run the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # whatever its keeper has
    disable_timer_slack()
    Worker(Path(arguments[0])).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
