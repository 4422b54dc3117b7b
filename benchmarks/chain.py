"""The whole analysis of a big run, from packets to hops, overhead and delays, Spark's start included.

`python -m benchmarks.chain [--packets N] [--no-double] [--json] [--check]`. Each run is measured in a process of its
own, with the memory of all processes that it starts; then one with twice as many packets. See docs/benchmarks.md.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.support.captures.run_folder import SUBSCRIBERS, write_run
from benchmarks.support.harness import Report, run
from benchmarks.support.process_usage import parent, pss
from testbed.errors import TestbedError

PACKETS = 2_000_000
LIMITS = {
    "seconds": 1.0,  # of 60 s, for 2 million packets
    "memory": 1.0,  # of 4 GiB
    "double": 2.2,  # times as long for twice as many packets
}
SECONDS, MEMORY = 60.0, 4 * 2**30
LOOK_EVERY_S = 1.0  # a sample of a big process costs some milliseconds
PROGRAM = """
import json, sys
from pathlib import Path
from analysis.pipeline import analyze
steps = []
summary = analyze(Path(sys.argv[1]), emit=lambda *step: steps.append(step))
print(json.dumps({"messages": summary["messages"], "delay_s": summary["delay_s"]}))
"""


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chain", description=__doc__)
    parser.add_argument("--packets", type=int, default=PACKETS, metavar="N")
    parser.add_argument("--no-double", action="store_true", help="leave the second run out")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    if asked.packets < 1000:
        parser.error("at least 1000 packets are needed")
    sizes = [asked.packets] if asked.no_double else [asked.packets, 2 * asked.packets]
    return run(Report(LIMITS), partial(measure, sizes), as_json=asked.json, check=asked.check)


def measure(sizes: list[int], report: Report, folder: Path) -> None:
    """Make each run, analyse it, and check that nothing was lost on the way."""
    for packets in sizes:
        place = folder / str(packets)
        began = time.monotonic()
        published = write_run(place, packets)
        report.details[f"{packets:,} packets, made in"] = f"{time.monotonic() - began:.0f} s"
        seconds, memory, summary = analyzed(place / "run")
        if summary["messages"]["delivered"] != published * SUBSCRIBERS:
            raise TestbedError(
                f"{summary['messages']} instead of {published * SUBSCRIBERS} deliveries",
                "what is fast and wrong is not measured",
            )
        report.took(f"{packets:,} packets", seconds)
        report.details[f"{packets:,} packets, most memory"] = f"{memory / 2**30:.2f} GiB"
        if packets == sizes[0]:
            report.ratios["seconds"] = round(seconds / SECONDS * PACKETS / packets, 3)
            report.ratios["memory"] = round(memory / MEMORY, 3)
    if len(sizes) > 1:
        report.compare("double", f"{sizes[1]:,} packets", f"{sizes[0]:,} packets")


def analyzed(folder: Path) -> tuple[float, int, dict[str, Any]]:
    """Seconds, peak memory, and the result of the analysis."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True
    )
    watcher = _Memory(process.pid)
    watcher.start()
    out, _ = process.communicate()
    seconds = time.monotonic() - began
    watcher.join()
    if process.returncode:
        raise TestbedError("the analysis failed", "its last words are above")
    return seconds, watcher.most, json.loads(out)


class _Memory(threading.Thread):
    """Peak memory of a process and its descendants; shared pages count once."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.most = 0

    def run(self) -> None:
        while (now := _held(self._pid)) is not None:
            self.most = max(self.most, now)
            time.sleep(LOOK_EVERY_S)


def _held(pid: int) -> int | None:
    """Proportional set size of a process and its descendants; None if it has ended."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended
                parents[int(entry.name)] = parent(int(entry.name))
    if pid not in parents:
        return None
    family = {pid}
    while more := {one for one, above in parents.items() if above in family} - family:
        family |= more
    return sum(map(_proportional, family))


def _proportional(pid: int) -> int:
    """Proportional set size of one process; 0 if it has just ended."""
    try:
        return pss(pid)
    except (OSError, TestbedError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
