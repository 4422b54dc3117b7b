"""How long a user waits for an answer, beside a plain Spark session and a small typer program on the same machine.

`python -m benchmarks.answers [--rounds N] [--json] [--check]`. A demo run is made once. Each round runs commands that
compute nothing, beside a program that has one option and prints an empty table, and writes the report. Then it starts a
plain session, which sums ten numbers, and analyses the run with its report: cold, cold without a class archive, and
with Spark kept ready. See docs/explanation/benchmarks.md.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from benchmarks.support.harness import Report, finished, plain_session, run, timed

DEMO = Path(__file__).resolve().parent.parent / "topologies" / "demo.yaml"
ROUNDS = 5
SESSION, PROGRAM = "plain session", "typer program"  # the peers
LIMITS = {
    "analyze": 0.6,
    "analyze, no archive": 0.8,
    "analyze, warm": 0.2,
    "report": 0.15,
    "help": 1.5,
    "validate": 2.5,
    "status": 2.0,
}
PEERS = {name: PROGRAM if name in ("help", "validate", "status") else SESSION for name in LIMITS}
TYPER_PROGRAM = """
import typer
from rich.console import Console
from rich.table import Table
app = typer.Typer()
@app.command()
def show(number: int = 1) -> None:
    Console().print(Table("number"))
app()
"""
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
        "TESTBED_CLASS_ARCHIVE": "keep",
        "PYTHONDONTWRITEBYTECODE": "",  # users' machines keep it
    }
    finished([sys.executable, "-m", "analysis.spark.training", "--foreground"], {})
    finished([*TESTBED, "run", str(DEMO), "--no-report"], env)
    (made,) = (folder / "captures").iterdir()
    analyze = [*TESTBED, "analyze", str(made)]
    finished(analyze, env)
    for _ in range(rounds):
        report.took(PROGRAM, timed([sys.executable, "-c", TYPER_PROGRAM], env))
        report.took("help", timed([*TESTBED, "--help"], env))
        report.took("validate", timed([*TESTBED, "validate", str(DEMO)], env))
        report.took("status", timed([*TESTBED, "status"], env))
        report.took("report", timed([*TESTBED, "report", str(made)], env))
        report.took(SESSION, plain_session())
        report.took("analyze", timed(analyze, env))
        report.took("analyze, no archive", timed(analyze, env | {"TESTBED_CLASS_ARCHIVE": "off"}))
        finished([*TESTBED, "spark", "start"], env)
        try:
            finished(analyze, env)  # the first one finds Spark's workers cold
            report.took("analyze, warm", timed(analyze, env))
        finally:
            finished([*TESTBED, "spark", "stop"], env)
    for name, peer in PEERS.items():
        report.compare(name, name, peer)


if __name__ == "__main__":
    sys.exit(main())
