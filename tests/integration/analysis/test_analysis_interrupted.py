"""Ctrl-C while Spark starts, runs or ends: no Java process and no file stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.runs.star_runs import StarRun, publications

pytestmark = pytest.mark.spark

PROGRAM = """
import signal, sys, time
from analysis.spark.session import open_session
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    with open_session() as spark:
        print("open", flush=True)
        time.sleep(300)
except KeyboardInterrupt:
    sys.exit(130)
"""
MEASURING = """
import sys
from pathlib import Path
from analysis.pipeline import analyze
try:
    analyze(Path(sys.argv[1]), emit=lambda *step: print(*step, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""
STUCK = """
import os, signal, sys
from analysis.spark import session
for name in ("first", "second"):
    with session.open_session() as spark:
        assert spark.range(5).count() == 5
        if name == "first":
            from pyspark import SparkContext
            os.kill(SparkContext._gateway.proc.pid, signal.SIGSTOP)
    print(name, flush=True)
"""
PATIENCE_S = 90


def processes_of(folder: Path) -> list[int]:
    """The processes that have this folder in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.fsencode(folder) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


def spark_folder(scratch: Path, _process: subprocess.Popen[str]) -> bool:
    return any(scratch.glob("testbed-spark-*"))


def java(scratch: Path, _process: subprocess.Popen[str]) -> bool:
    return bool(processes_of(scratch))


def session(_scratch: Path, process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "open\n"


@pytest.mark.parametrize(
    ("there_is", "signals"),
    [
        (spark_folder, [signal.SIGINT]),
        (java, [signal.SIGTERM]),
        (java, [signal.SIGINT, signal.SIGINT]),
        (session, [signal.SIGINT]),
    ],
)
def test_an_interrupt_leaves_no_java_and_no_folder_behind(tmp_path, there_is, signals):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        limit = time.monotonic() + PATIENCE_S
        while not there_is(tmp_path, process):
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.01)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.3)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "")
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_in_the_middle_of_the_work_is_quiet_and_leaves_nothing_half_done(tmp_path):
    folder, scratch = tmp_path / "run", tmp_path / "scratch"
    StarRun(publications=list(publications(20, 2))).write(folder)
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", MEASURING, str(folder)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("reading the captures 0 "):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "")
    assert processes_of(scratch) == []
    assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in folder.iterdir()) == ["logs", "pcap", "run.json"]


def test_a_java_that_does_not_answer_any_more_is_ended_and_the_next_session_is_a_good_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", STUCK],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "first\nsecond\n", "")
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
