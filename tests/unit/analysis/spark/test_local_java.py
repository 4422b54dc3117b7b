"""Java is started once more, without its class archive, if it ends with it."""

import os
from pathlib import Path

import pytest

from analysis.errors import AnalysisError
from analysis.spark import local_java
from analysis.spark.archive import ClassArchive
from analysis.spark.java import JavaHome
from analysis.spark.local_java import LocalJava

# Fails with an archive, and else waits for Python as Spark does.
JAVA = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in *SharedArchiveFile*) exit 1 ;; esac
{then}
"""
WAITS = r"""printf '\000\000\001\000\000\000\000\002ab' > "$_PYSPARK_DRIVER_CONN_INFO_PATH"; cat"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalJava:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TESTBED_CLASS_ARCHIVE", raising=False)
    home = JavaHome(tmp_path / "java", 17, "PATH")
    monkeypatch.setattr(local_java, "find_java", lambda: home)
    found = LocalJava()
    found.archive.path.parent.mkdir(parents=True)
    found.archive.path.write_text("classes")
    return found


def program(tmp_path: Path, then: str) -> Path:
    path, log = tmp_path / "java" / "bin" / "java", tmp_path / "log"
    path.parent.mkdir(parents=True)
    path.write_text(JAVA.format(log=log, then=then))
    path.chmod(0o755)
    return log


def test_an_archive_with_which_java_ends_is_removed(java, tmp_path):
    log = program(tmp_path, WAITS)
    with java:
        assert java.bridge() == (256, "ab")
        assert not java.uses_archive
    assert len(log.read_text().splitlines()) == 2
    assert not java.archive.path.exists()


def test_an_archive_that_cannot_be_removed_is_tried_once(java, tmp_path, monkeypatch):
    log = program(tmp_path, WAITS)
    monkeypatch.setattr(ClassArchive, "discard", lambda _: None)
    with java:
        java.bridge()
    assert len(log.read_text().splitlines()) == 2


def test_a_java_that_ends_for_another_reason_is_an_error_and_the_archive_stays(java, tmp_path):
    log = program(tmp_path, "echo no memory; exit 7")
    with java:
        with pytest.raises(AnalysisError, match="exit code 7"):
            java.bridge()
        assert java.last_lines() == ["no memory"]
    assert len(log.read_text().splitlines()) == 2
    assert java.archive.path.exists()


def test_nothing_was_said_by_a_java_that_was_not_started():
    assert LocalJava().last_lines() == []


def test_workers_import_nothing_from_the_current_folder(java, tmp_path):
    log = program(tmp_path, f'echo "$PYTHONSAFEPATH" > "{tmp_path}/safe"; {WAITS}')
    with java:
        java.bridge()
    assert (tmp_path / "safe").read_text() == "1\n"
    assert log.exists()
    assert os.environ.get("PYTHONSAFEPATH") is None
