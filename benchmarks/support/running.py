"""The frame of a benchmark: a folder of its own, errors as sentences, and nothing left behind."""

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.support.commands import interrupt_once
from benchmarks.support.report import Report
from testbed.errors import TestbedError

INTERRUPTED = 130


def run(
    report: Report, measure: Callable[[Report, Path], None], *, as_json: bool, check: bool
) -> int:
    """Measure, report; the exit code."""
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
