"""Overlays of up to 100,000 nodes: how fast they are built and followed, and FAN-TBPS beside PSG-TBPS.

`python -m benchmarks.overlays [--what reach,growth,paper] [--json] [--check]`. See docs/explanation/benchmarks.md.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.support.harness import Report, run
from testbed.converged import PATTERNS, measure_topics
from testbed.papers import kita2025
from testbed.papers.cells import SIZES, measure

LIMITS = {
    "reach_time": 1.0,  # of 20 s: 100,000 nodes linked and 990 subscribers reached
    "reach_memory": 1.0,  # of 2 GiB
    "growth": 2.0,  # processor time of a delivery among 100,000 nodes / among 1,000, the worst pattern
    "speed": 1.0,  # 200,000 / deliveries a second of one core, the worst pattern
    "paper": 1.0,  # of 30 minutes on 2 cores: all of kita2025
    "fan_path": 1.05,  # FAN-TBPS / PSG-TBPS at priority 5, the worst of patterns a to c among 1,000
    "fan_messages": 0.3,
}
REACH_S, REACH_BYTES = 20.0, 2 * 2**30
DELIVERIES_PER_S = 200_000
PAPER_S, CORES = 30 * 60.0, 2
SMALL_TRIALS = 10  # among 1,000 nodes, where one trial is too short to be timed
URGENT = 5
Row = dict[str, Any]


def main() -> int:
    """Measure and report."""
    parts: dict[str, Callable[[Report], None]] = {
        "reach": reach,
        "growth": growth,
        "paper": paper,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overlays", description=__doc__)
    parser.add_argument("--what", default=",".join(parts), help="which parts; all")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    names = asked.what.split(",")
    if unknown := set(names) - set(parts):
        parser.error(f"--what knows {', '.join(parts)}, not {', '.join(sorted(unknown))}")
    return run(
        Report(LIMITS),
        partial(_measure, [parts[name] for name in names]),
        as_json=asked.json,
        check=asked.check,
    )


def _measure(parts: Sequence[Callable[[Report], None]], report: Report, _: Path) -> None:
    for part in parts:
        part(report)


def reach(report: Report) -> None:
    """Link all nodes and reach all subscribers of a topic, in another process, so that only its own memory counts."""
    argv = [sys.executable, "-m", "benchmarks.support.overlay_reach", str(SIZES[-1])]
    seconds, memory = subprocess.check_output(argv, text=True).split()
    report.took(f"{SIZES[-1]:,} nodes linked, 990 subscribers reached", float(seconds))
    report.ratios["reach_time"] = round(float(seconds) / REACH_S, 4)
    report.ratios["reach_memory"] = round(float(memory) / REACH_BYTES, 4)
    report.details["memory of that process"] = f"{float(memory) / 2**20:.0f} MiB"


def growth(report: Report) -> None:
    """Processor time of a delivery by SG-TBPS, whose few deliveries carry the largest share of the building time."""
    worst, slowest = 0.0, float("inf")
    for pattern in PATTERNS:
        few = _per_delivery(pattern, SIZES[0], SMALL_TRIALS)
        many = _per_delivery(pattern, SIZES[-1], 1)
        worst, slowest = max(worst, many / few), min(slowest, 1 / few, 1 / many)
        report.details[
            f"pattern {pattern}, ns a delivery, {SIZES[0]:,} and {SIZES[-1]:,} nodes"
        ] = f"{few * 1e9:.0f}, {many * 1e9:.0f}"
    report.ratios["growth"] = round(worst, 3)
    report.ratios["speed"] = round(DELIVERIES_PER_S / slowest, 3)


def _per_delivery(pattern: str, nodes: int, trials: int) -> float:
    before = time.process_time()
    rows = [
        row
        for trial in range(trials)
        for row in measure_topics(pattern, nodes, 1, trial, methods=["sg-tbps"])
    ]
    took = time.process_time() - before
    return took / sum(int(row["deliveries"]) for row in rows)


def paper(report: Report) -> None:
    """Run one trial of each cell of kita2025, as `testbed reproduce` does, and compare FAN-TBPS."""
    topics: list[Row] = []
    whole = 0.0
    for cell in kita2025.full(trials=1).cells:
        before = time.process_time()
        rows = [row for table, row in measure(cell.as_plain()) if table == "topics"]
        took = time.process_time() - before
        topics += rows
        whole += took * kita2025.TRIALS
        what = cell.arguments.get("pattern") or f"{cell.arguments['subscribers']:,} subscribers"
        report.took(f"{cell.experiment}, {what}, {cell.arguments['nodes']:,} nodes", took)
    report.ratios["paper"] = round(whole / CORES / PAPER_S, 3)
    report.details[f"kita2025, {kita2025.TRIALS} trials, on {CORES} cores"] = (
        f"{whole / CORES / 60:.1f} minutes"
    )
    small = [fan_beside_psg(topics, pattern, SIZES[0]) for pattern in "abc"]
    report.ratios["fan_path"] = round(max(path for path, _ in small), 3)
    report.ratios["fan_messages"] = round(max(messages for _, messages in small), 4)
    for nodes in SIZES:
        for pattern in PATTERNS:
            path, messages = fan_beside_psg(topics, pattern, nodes)
            report.details[f"FAN / PSG at priority 5, pattern {pattern}, {nodes:,} nodes"] = (
                f"path {path:.3f}, messages {messages:.4f}"
            )


def fan_beside_psg(rows: Sequence[Row], pattern: str, nodes: int) -> tuple[float, float]:
    """FAN-TBPS beside PSG-TBPS: the ratio of paths and of messages.

    Its path is compared with the shortest of all variants; its messages with the fewest of variants whose path is about
    as short.
    """
    urgent = [
        row
        for row in rows
        if (row["pattern"], row["nodes"], row["priority"]) == (pattern, nodes, URGENT)
    ]
    (ours,) = (row for row in urgent if row["method"] == "fan-tbps")
    theirs = [row for row in urgent if row["method"] == "psg-tbps"]
    shortest = min(row["path"] for row in theirs)
    fewest = min(row["forwards"] for row in theirs if row["path"] <= 1.05 * shortest)
    return ours["path"] / shortest, ours["forwards"] / fewest


if __name__ == "__main__":
    sys.exit(main())
