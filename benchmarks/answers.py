"""How long a user waits for an answer, beside a plain Spark session and plain Python on the same machine.

`python -m benchmarks.answers [--rounds N] [--json] [--check]`. A demo run is made once. Each round starts a plain
session, which sums ten numbers, then analyses the run cold (with its report), then writes the report alone, and then
runs commands that compute nothing, beside a Python that only imports their terminal libraries. See docs/benchmarks.md.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from benchmarks.support.harness import Report, finished, run, timed

DEMO = Path(__file__).resolve().parent.parent / "topologies" / "demo.yaml"
ROUNDS = 5
LIMITS = {
    "analyze": 0.6,  # of the plain session
    "report": 0.15,  # of the plain session
    "help": 3.0,  # of plain Python
    "validate": 3.0,
    "status": 3.0,
}
PLAIN_SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(10).groupBy().sum().first()[0] == 45
spark.stop()
"""
PLAIN_PYTHON = "import typer, rich"
TESTBED = (sys.executable, "-m", "testbed")


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    return run(
        Report(LIMITS), partial(measure, asked.rounds), as_json=asked.json, check=asked.check
    )


def measure(rounds: int, report: Report, folder: Path) -> None:
    """Make a run, and time the commands in turn."""
    env = {
        "TESTBED_STATE": str(folder / "state"),
        "TESTBED_CAPTURES": str(folder / "captures"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    finished([*TESTBED, "run", str(DEMO), "--no-report"], env)
    (made,) = (folder / "captures").iterdir()
    for _ in range(rounds):
        report.took("plain session", timed([sys.executable, "-c", PLAIN_SESSION], env))
        report.took("analyze", timed([*TESTBED, "analyze", str(made)], env))
        report.took("report", timed([*TESTBED, "report", str(made)], env))
        report.took("plain Python", timed([sys.executable, "-c", PLAIN_PYTHON], env))
        report.took("help", timed([*TESTBED, "--help"], env))
        report.took("validate", timed([*TESTBED, "validate", str(DEMO)], env))
        report.took("status", timed([*TESTBED, "status"], env))
    for name in LIMITS:
        peer = "plain session" if name in ("analyze", "report") else "plain Python"
        report.compare(name, name, peer)


if __name__ == "__main__":
    sys.exit(main())
