"""Run pytest as a process, and read its report: for the scripts that repeat tests."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = REPOSITORY / ".venv" / "bin" / "python"
END_WITHIN_S = 60


@dataclass(frozen=True)
class Failure:
    """A test that failed: its id as pytest prints it, and its output."""

    test: str
    text: str


@dataclass(frozen=True)
class TestRun:
    """One run of the tests: its outcome, and what the report of pytest says of each test."""

    code: int
    seconds: float
    tests: int
    skipped: int
    failures: tuple[Failure, ...]
    log: Path


def run_tests(
    command: list[str], folder: Path, number: int, limit_s: float | None = None
) -> TestRun:
    """Run a command that calls pytest. Its output goes to a log. After `limit_s` it is interrupted, as by Ctrl-C."""
    report, log = folder / f"run-{number}.xml", folder / f"run-{number}.log"
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} --junitxml={report}".strip()
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, "PYTEST_ADDOPTS": options},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code = _wait(process, limit_s)
    tests, skipped, failures = read_report(report)
    return TestRun(code, time.monotonic() - began, tests, skipped, failures, log)


def _wait(process: subprocess.Popen[bytes], limit_s: float | None) -> int:
    """The exit code. An interrupt of this process, or the end of the time, interrupts the tests, too."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return _interrupt(process)
    except KeyboardInterrupt:
        _interrupt(process)
        raise


def _interrupt(process: subprocess.Popen[bytes]) -> int:
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(END_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def read_report(report: Path) -> tuple[int, int, tuple[Failure, ...]]:
    """The number of tests, the number of skipped ones, and the failures."""
    if not report.exists():  # the command ended before the tests began or ended
        return 0, 0, (Failure("(no report of pytest)", ""),)
    cases = list(ElementTree.parse(report).iter("testcase"))
    failures = tuple(
        Failure(f"{case.get('classname')}::{case.get('name')}", found.text or "")
        for case in cases
        if (found := _problem(case)) is not None
    )
    return len(cases), sum(case.find("skipped") is not None for case in cases), failures


def _problem(case: ElementTree.Element) -> ElementTree.Element | None:
    failure = case.find("failure")
    return case.find("error") if failure is None else failure
