"""Which class archive Java uses, and when one is made."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.spark import archive as archives
from analysis.spark.archive import ClassArchive, State
from analysis.spark.java import JavaHome


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """That of an invented Java 17 and PySpark."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(archives.CHOICE, raising=False)
    home, jars = tmp_path / "java", tmp_path / "jars"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "libjvm.so").write_text("java")
    (home / "release").write_text("17")
    jars.mkdir()
    (jars / "spark.jar").write_text("spark")
    return ClassArchive(JavaHome(home, 17, "PATH"), jars)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are started in the background."""
    modules: list[str] = []
    monkeypatch.setattr(archives, "start_module", modules.append)
    return modules


def made(archive: ClassArchive) -> ClassArchive:
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    archive.path.write_text("classes")
    return archive


def again(archive: ClassArchive) -> ClassArchive:
    """The same for a process that starts later."""
    return ClassArchive(archive.java, archive.jars)


@pytest.mark.parametrize(
    ("version", "using", "making"),
    [(17, "SharedArchiveFile", "ArchiveClassesAtExit"), (25, "AOTCache", "AOTCacheOutput")],
)
def test_java_is_started_with_the_archive_that_there_is(archive, version, using, making):
    archive = ClassArchive(replace(archive.java, version=version), archive.jars)
    assert archive.options_to_use() == []
    assert f"-XX:{making}={archive.unfinished}" in archive.options_to_make()
    assert f"-XX:{using}={made(archive).path}" in archive.options_to_use()


@pytest.mark.parametrize(("version", "name"), [(17, "SharedArchiveFile"), (25, "AOTCache")])
def test_executors_of_any_java_accept_the_options_for_the_archive(archive, version, name):
    archive = ClassArchive(replace(archive.java, version=version), archive.jars)
    assert archive.options_for_executors() == []
    made(archive)
    assert archive.options_for_executors()[0] == f"-XX:{name}={archive.path}"
    assert all(option.startswith("-XX:") for option in archive.options_for_executors())


def test_executors_get_no_option_that_spark_would_divide(archive, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    assert made(again(archive)).options_for_executors() == []


def test_the_class_path_is_that_of_executors(archive):
    (archive.jars / "slf4j-api-2.jar").write_text("logging")
    conf, jars = archive.jars.with_name("conf"), archive.jars
    assert archive.class_path == f"{conf}:{jars}/slf4j-api-2.jar:{jars}/*"


def test_settings_in_the_folder_of_pyspark_have_no_effect(archive):
    conf = archive.jars.with_name("conf")
    conf.mkdir()
    assert archive.class_path == f"{archive.jars}/*"


@pytest.mark.parametrize("changed", ["java/lib/server/libjvm.so", "java/release", "jars/spark.jar"])
def test_another_java_or_pyspark_has_another_archive(archive, tmp_path, changed):
    file = tmp_path / changed
    os.utime(file, ns=(1, 1))
    before = made(again(archive)).path
    file.write_text("another")
    assert again(archive).path != before
    assert again(archive).options_to_use() == []


def test_another_jar_is_another_archive(archive):
    before = archive.path
    (archive.jars / "more.jar").write_text("more")
    assert again(archive).path != before


def test_a_missing_archive_is_made_in_the_background_once(archive, started):
    assert archive.state() is State.MISSING
    archive.make_in_background()
    assert started == ["analysis.spark.training"]
    with archive.locked() as alone:
        assert alone
        assert archive.state() is State.MAKING
        assert "is being made" in archive.describe()
        with again(archive).locked() as other:
            assert not other
        archive.make_in_background()
    made(archive).make_in_background()
    assert archive.state() is State.MADE
    assert len(started) == 1


@pytest.mark.parametrize("choice", ["off", "keep"])
def test_the_user_can_do_without_new_archives(archive, started, monkeypatch, choice):
    monkeypatch.setenv(archives.CHOICE, choice)
    archive.make_in_background()
    assert started == []
    assert choice in archive.describe()


def test_the_user_can_do_without_an_archive_that_there_is(archive, monkeypatch):
    monkeypatch.setenv(archives.CHOICE, "off")
    assert made(archive).options_to_use() == []
    assert archive.state() is State.OFF


def test_what_failed_is_not_tried_again_and_the_reason_is_shown(archive, started):
    archive.path.parent.mkdir(parents=True)
    archive.failure.write_text("Java ended with exit code 1\n")
    archive.make_in_background()
    assert started == []
    assert archive.state() is State.FAILED
    assert archive.describe() == "could not be made: Java ended with exit code 1"


def test_a_cache_that_cannot_be_written_is_no_error(archive, started, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    archive.make_in_background()
    assert started == []
    assert archive.state() is State.MISSING
    assert "cannot be written" in archive.describe()
    assert archive.options_to_use() == []


def test_a_full_disk_gets_no_archive(archive, started, monkeypatch):
    monkeypatch.setattr(archives, "NEEDED_BYTES", 1 << 60)
    archive.make_in_background()
    assert started == []
    assert "are free in" in archive.describe()


def test_the_archives_that_were_used_last_are_kept(archive):
    folder = archive.path.parent
    folder.mkdir(parents=True)
    for number in range(archives.KEPT + 2):
        old = folder / f"java-17-{number}.archive"
        old.write_text("classes")
        os.utime(old, (number, number))
    archive.unfinished.write_text("classes")
    archive.keep()
    left = {file.name for file in folder.glob("*.archive")}
    assert left == {"java-17-3.archive", "java-17-4.archive", archive.path.name}
    assert not archive.unfinished.exists()
