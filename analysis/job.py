"""The analysis as a job of `spark-submit`, on a cluster that has only Spark with numpy and pyarrow.

    spark-submit --master spark://HOST:PORT --py-files testbed-code.zip testbed-job.py packets PATH... [--to FOLDER]
    spark-submit --master spark://HOST:PORT --py-files testbed-code.zip testbed-job.py analyze RUN [--strict]

Prints one JSON document. Exit codes as those of `testbed packets` and `testbed analyze`.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.captures.files import find_files
from analysis.errors import AnalysisError
from analysis.inputs.run_folder import read_run
from analysis.packets import count_packets
from analysis.pipeline import measure
from analysis.spark.settings import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED, IN_PART = 1, 3


def main() -> int:
    """Run the job of the command line in the session of spark-submit."""
    parser = argparse.ArgumentParser(prog="testbed-job.py", description=__doc__)
    jobs = parser.add_subparsers(dest="job", required=True)
    packets = jobs.add_parser("packets", help="count packets, and write them as Parquet")
    packets.add_argument("paths", nargs="+", metavar="PATH")
    packets.add_argument("--to", type=Path, default=None, metavar="FOLDER.parquet")
    analyze = jobs.add_parser("analyze", help="measure a run")
    analyze.add_argument("run", type=Path, metavar="RUN")
    analyze.add_argument("--strict", action="store_true", help="exit code 3 also after warnings")
    asked = parser.parse_args()

    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    prepare(spark)
    try:
        document, code = _done(spark, asked)
        # Write before Spark stops: spark-submit ends with this process, and may lose later output.
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        sys.stdout.flush()
    finally:
        spark.stop()
    return code


def _done(spark: "SparkSession", asked: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """The document, and the exit code. Nothing else is printed: spark-submit merges both outputs."""
    try:
        return _packets(spark, asked) if asked.job == "packets" else _run(spark, asked)
    except AnalysisError as error:
        details = {"message": error.message, "hint": error.hint, "exit_code": FAILED}
        return {"error": details}, FAILED


def _packets(spark: "SparkSession", asked: argparse.Namespace) -> tuple[dict[str, Any], int]:
    if asked.to is not None and asked.to.exists():
        raise AnalysisError(f"{asked.to} exists already", "name another, or remove it first.")
    document = count_packets(spark, find_files(asked.paths), asked.to, lambda *_: None)
    return document, IN_PART if document["problems"] else 0


def _run(spark: "SparkSession", asked: argparse.Namespace) -> tuple[dict[str, Any], int]:
    summary = measure(spark.sparkContext, read_run(asked.run.resolve()))
    warnings = summary["fidelity"]["reasons"]
    return {**summary, "warnings": warnings, "incomplete": []}, exit_code(summary, asked.strict)


def exit_code(summary: Mapping[str, Any], strict: bool) -> int:
    """That of `testbed analyze`: expectations that do not hold go before warnings."""
    if not all(verdict["ok"] for verdict in summary["expectations"]):
        return FAILED
    return IN_PART if strict and not summary["fidelity"]["ok"] else 0
