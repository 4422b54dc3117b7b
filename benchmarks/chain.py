"""The whole analysis of a big run, from packets to hops, overhead and delays, Spark's start included.

`python -m benchmarks.chain [--packets N] [--no-double] [--json] [--check]`. Each run is measured in a process of its
own, with the memory of all processes that it starts; then on a cluster of two workers on this machine; then one with
twice as many packets. Beside them a plain Spark session, which sums ten numbers. See docs/explanation/benchmarks.md.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from analysis.spark.session import LOCAL
from benchmarks.support.captures.run_folder import SUBSCRIBERS, write_run
from benchmarks.support.harness import ON_LOOPBACK, Report, finished, plain_session, run
from benchmarks.support.process_usage import parent, pss
from benchmarks.support.spark_cluster import own_cluster
from testbed.errors import TestbedError

PACKETS = 2_000_000
LIMITS = {
    "of a plain session": 2.3,  # its seconds, for 2 million packets
    "memory": 1.0,  # of 3 GiB
    "cluster": 1.3,  # times as long with two workers of a core each
    "double": 2.0,  # times as long for twice as many packets
    "double, memory": 1.0,  # of 4 GiB
}
MEMORY, DOUBLE_MEMORY = 3 * 2**30, 4 * 2**30
SESSION, CLUSTER = "plain session", "cluster"
LOOK_EVERY_S = 1.0  # a sample of a big process costs some milliseconds
PROGRAM = """
import json, sys
from pathlib import Path
from analysis.pipeline import analyze
steps = []
summary = analyze(Path(sys.argv[1]), emit=lambda *step: steps.append(step), master=sys.argv[2])
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
    finished([sys.executable, "-m", "analysis.spark.training", "--foreground"], {})
    for packets in sizes:
        place = folder / str(packets)
        began = time.monotonic()
        deliveries = write_run(place, packets) * SUBSCRIBERS
        report.details[f"{packets:,} packets, made in"] = f"{time.monotonic() - began:.0f} s"
        report.took(SESSION, plain_session())
        seconds, memory = analyzed(place / "run", deliveries)
        report.took(_size(packets), seconds)
        report.details[f"{packets:,} packets, most memory"] = f"{memory / 2**30:.2f} GiB"
        if packets == sizes[0]:
            report.ratios["memory"] = round(memory / MEMORY, 3)
            with own_cluster(folder, workers=2, cores=1) as master:
                report.took(CLUSTER, analyzed(place / "run", deliveries, master)[0])
        else:
            report.ratios["double, memory"] = round(memory / DOUBLE_MEMORY, 3)
    first = _size(sizes[0])
    report.compare("of a plain session", first, SESSION)
    report.compare("cluster", CLUSTER, first)
    if len(sizes) > 1:
        report.compare("double", _size(sizes[1]), first)


def _size(packets: int) -> str:
    return f"{packets:,} packets"


def analyzed(folder: Path, deliveries: int, master: str = LOCAL) -> tuple[float, int]:
    """Seconds and peak memory of the analysis, which must find so many deliveries."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), master],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ON_LOOPBACK},
    )
    watcher = _Memory(process.pid)
    watcher.start()
    out, _ = process.communicate()
    seconds = time.monotonic() - began
    watcher.join()
    if process.returncode:
        raise TestbedError("the analysis failed", "its last words are above")
    found = json.loads(out)["messages"]
    if found["delivered"] != deliveries:
        raise TestbedError(
            f"{found} instead of {deliveries} deliveries", "what is fast and wrong is not measured"
        )
    return seconds, watcher.most


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
