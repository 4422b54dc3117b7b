"""Packets to Parquet, twelve header fields each: Spark's tasks with our parser beside tshark, scapy and it alone.

Three times in Spark: as `testbed packets` does it, where each task writes what it reads; as a table whose fields all
get to Spark's own operators; and as a table that Spark writes.

`python -m benchmarks.captures [--packets N] [--rounds N] [--json] [--check]`. See docs/explanation/benchmarks.md.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from analysis.captures.source import register
from analysis.packets import write_parquet
from analysis.spark.session import open_session
from benchmarks.support.captures.readers import FIELDS, Bare, scapy_s, tshark_rows, tshark_s
from benchmarks.support.captures.traffic import write_traffic
from benchmarks.support.harness import Report, run
from testbed.errors import TestbedError

LIMITS = {
    "of tshark": 1 / 20,  # seconds / tshark's; Spark runs already
    "of tshark, as a table": 1 / 30,
    "of tshark, as a table to Parquet": 1 / 20,
    "of scapy": 1 / 100,
    "of scapy, as a table": 1 / 100,
    "of scapy, as a table to Parquet": 1 / 100,
    "of tshark, start included": 1 / 5,  # Java and Spark are started, and the first job is slower
    "of tshark, start included, as a table": 1 / 5,
    "of tshark, start included, as a table to Parquet": 1 / 5,
    "of the bare parser": 3.0,  # the same fields to Parquet in a process a core
    "of the bare parser, as a table": 3.0,
    "of the bare parser, as a table to Parquet": 3.0,
}
SCAPY_PACKETS = 20_000  # scapy reads no more than that: it would take a quarter of an hour
COMPARED = 1_000  # packets whose fields must be tshark's
OURS, TABLE, WRITTEN = "Spark's tasks", "a table in Spark", "a table to Parquet"
BARE, TSHARK, SCAPY = "bare parser", "tshark", "scapy"
Sessions = Callable[..., AbstractContextManager[Any]]


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.captures", description=__doc__)
    parser.add_argument("--packets", type=int, default=2_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="jobs that are timed")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    if min(asked.packets, asked.rounds) < 1:
        parser.error("at least one packet and one round are needed")
    return run(
        Report(LIMITS),
        partial(measure, asked.packets, asked.rounds),
        as_json=asked.json,
        check=asked.check,
    )


def measure(
    packets: int, rounds: int, report: Report, folder: Path, sessions: Sessions = open_session
) -> None:
    """Let all readers read one file, one after the other."""
    capture = folder / "traffic.pcap"
    write_traffic(capture, packets)
    report.details["packets"] = packets
    report.details["bytes"] = capture.stat().st_size
    _read_by_others(capture, packets, rounds, report, folder)
    ways = ((OURS, _by_tasks, True), (TABLE, _as_table, False), (WRITTEN, _to_parquet, False))
    for name, way, short in ways:
        began = time.monotonic()
        with sessions(short=short) as spark:
            register(spark)
            report.took(f"{name}: Spark's start", time.monotonic() - began)
            for number in range(rounds + 1):
                target = folder / f"{number}.parquet"
                began = time.monotonic()
                way(spark, capture, target)
                took = time.monotonic() - began
                report.took(name if number else f"{name}, first", took)
                if name != TABLE:  # which is that of WRITTEN
                    _must_agree(target, packets, folder / "tshark.txt")
                    shutil.rmtree(target)
    _compare(packets, report)


def _read_by_others(capture: Path, packets: int, rounds: int, report: Report, folder: Path) -> None:
    report.took(TSHARK, tshark_s(capture, folder / "tshark.txt"))
    few = min(packets, SCAPY_PACKETS)
    report.took(f"{SCAPY}, {few:,} packets", scapy_s(capture, few))
    bare = Bare(capture)
    for _ in range(rounds):
        place = folder / "bare"
        place.mkdir()
        report.took(BARE, bare.seconds(place))
        shutil.rmtree(place)
        report.took(f"{BARE}, to Arrow only", bare.seconds(None))


def _by_tasks(spark: Any, capture: Path, target: Path) -> None:
    write_parquet(spark, [str(capture)], target, tuple(FIELDS))


def _table(spark: Any, capture: Path) -> Any:
    return spark.read.format("pcap").option("columns", ",".join(FIELDS)).load(str(capture))


def _as_table(spark: Any, capture: Path, _target: Path) -> None:
    _table(spark, capture).write.format("noop").mode("overwrite").save()  # Spark's sink for that


def _to_parquet(spark: Any, capture: Path, target: Path) -> None:
    _table(spark, capture).write.parquet(str(target))


def _must_agree(target: Path, packets: int, theirs: Path) -> None:
    """Fail unless our fields equal tshark's: a fast but wrong reader is not measured."""
    table = pq.read_table(target)
    if len(table) != packets:
        raise TestbedError(f"{len(table)} packets instead of {packets}", "see test_pcap_source.py")
    ours = [tuple(row.values()) for row in table.sort_by("ts_ns").slice(0, COMPARED).to_pylist()]
    if ours != tshark_rows(theirs, COMPARED):
        raise TestbedError("our fields are not tshark's", "see test_captures_tshark.py")


def _compare(packets: int, report: Report) -> None:
    few = min(packets, SCAPY_PACKETS)
    (scapy,) = report.seconds[f"{SCAPY}, {few:,} packets"]
    (tshark,) = report.seconds[TSHARK]
    ways = ((OURS, ""), (TABLE, ", as a table"), (WRITTEN, ", as a table to Parquet"))
    for name, way in ways:
        report.compare(f"of tshark{way}", name, TSHARK)
        report.compare(f"of the bare parser{way}", name, BARE)
        ours = median(report.seconds[name])
        report.ratios[f"of scapy{way}"] = round(ours / packets / (scapy / few), 5)
        (start,), (first,) = (
            report.seconds[f"{name}: Spark's start"],
            report.seconds[f"{name}, first"],
        )
        report.ratios[f"of tshark, start included{way}"] = round((start + first) / tshark, 3)
        report.details[f"{name}: packets a second"] = round(packets / ours)
        report.details[f"{name}: times as fast as tshark"] = round(tshark / ours, 1)
        report.details[f"{name}: times as fast as scapy"] = round(scapy / few * packets / ours, 1)
    report.details[f"{TSHARK}: packets a second"] = round(packets / tshark)
    report.details[f"{SCAPY}: packets a second"] = round(few / scapy)


if __name__ == "__main__":
    sys.exit(main())
