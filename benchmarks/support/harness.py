"""The frame of a benchmark: a folder of its own, errors as sentences, and complete clean-up."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.table import Table

from testbed.errors import TestbedError
from testbed.lab.start.provenance import machine_facts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# The results of a benchmark, for people and for programs.


@dataclass(slots=True)
class Report:
    """Ratios with their limits, and the measurements they were made from."""

    limits: dict[str, float]
    ratios: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # measurement -> each round
    details: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=machine_facts)

    def took(self, what: str, seconds: float) -> None:
        """Record one measurement."""
        self.seconds.setdefault(what, []).append(round(seconds, 3))

    def compare(self, name: str, ours: str, peer: str) -> None:
        """The ratio of the medians of two measurements."""
        self.ratios[name] = round(median(self.seconds[ours]) / median(self.seconds[peer]), 3)

    @property
    def above(self) -> list[str]:
        """The ratios that are above their limit."""
        return [name for name, ratio in self.ratios.items() if ratio > self.limits[name]]

    def show(self, as_json: bool) -> None:
        """Print the report."""
        if as_json:
            measured = {name: limit for name, limit in self.limits.items() if name in self.ratios}
            print(json.dumps({**asdict(self), "limits": measured}, indent=2))
            return
        console = Console(highlight=False)
        times = Table("what", "seconds")
        for what, seconds in self.seconds.items():
            times.add_row(what, ", ".join(f"{value:.2f}" for value in seconds))
        verdicts = Table("ratio", "measured", "limit", "")
        for name, ratio in self.ratios.items():
            limit = self.limits[name]
            verdict = "above" if ratio > limit else "within"
            verdicts.add_row(name, f"{ratio:.3f}", f"{limit:g}", verdict)
        details = Table("detail", "value")
        for key, value in self.details.items():
            details.add_row(key, str(value))
        console.print(*(table for table in (times, verdicts, details) if table.row_count))
        about = self.machine
        memory = about["memory_bytes"] / 2**30
        console.print(
            f"{about['cpu']}, {about['cores']} cores, {memory:.0f} GiB, Linux {about['kernel']}, "
            f"load {about['load_average']:.1f} before",
            markup=False,
        )


def json_row(row: "DataclassInstance") -> dict[str, Any]:
    """The fields of a row of results for JSON, which has no infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(row).items()
    }


# The peer of what needs Spark: the least that Spark itself can do, from start to stop.
PLAIN_SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(10).groupBy().sum().first()[0] == 45
spark.stop()
"""
ON_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def plain_session() -> float:
    """Seconds that it takes."""
    return timed([sys.executable, "-c", PLAIN_SESSION], ON_LOOPBACK)


# Commands of a benchmark: timed, checked, and ended with it.


LONGEST_S = 1800.0


def interrupt_once() -> None:
    """The first Ctrl-C or SIGTERM interrupts the benchmark; further ones do not disturb it while it clears up."""

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupted)


def timed(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    codes: Sequence[int] = (0,),
) -> float:
    """Seconds that the command took; TestbedError with the end of its stderr if it failed."""
    began = time.monotonic()
    finished(argv, env, cwd, codes)
    return time.monotonic() - began


def finished(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    codes: Sequence[int] = (0,),
) -> "subprocess.CompletedProcess[str]":
    """The command at its end; TestbedError with the end of its stderr if it failed."""
    done = subprocess.run(
        list(argv),
        env={**os.environ, **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        start_new_session=True,  # a Ctrl-C is for the benchmark, which then ends it
        check=False,
    )
    if done.returncode not in codes:
        words = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise TestbedError(f"`{' '.join(argv)}` ended with {done.returncode}: {words}")
    return done


INTERRUPTED = 130


def run(
    report: Report, measure: Callable[[Report, Path], None], *, as_json: bool, check: bool
) -> int:
    """Measure and report; return the exit code."""
    interrupt_once()
    folder = Path(tempfile.mkdtemp(prefix="testbed-bench-"))
    try:
        measure(report, folder)
    except TestbedError as error:
        hint = f"\n  → {error.hint}" if error.hint else ""
        print(f"error: {error.message}{hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; everything was taken back", file=sys.stderr)
        return INTERRUPTED
    finally:
        shutil.rmtree(folder)
    report.show(as_json)
    return 1 if check and report.above else 0
