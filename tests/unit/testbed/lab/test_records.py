"""Selecting a run, and the required content of a manifest."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from testbed.errors import InputError, NoSuchRun
from testbed.places import RunPlace
from testbed.records import (
    FORMAT,
    extend_manifest,
    find_run,
    make_run_folder,
    new_run,
    read_manifest,
    update_manifest,
)


def a_run(lab: str, age: float) -> RunPlace:
    place = new_run(lab)
    make_run_folder(place)
    update_manifest(place, format=FORMAT, run=place.run)
    moment = place.manifest.stat().st_mtime - age
    os.utime(place.manifest, (moment, moment))
    return place


def test_a_run_is_found_by_id_by_folder_by_lab_and_as_the_newest(places):
    old, new = a_run("slope-a", 100), a_run("slope-a", 50)
    other = a_run("slope", 10)
    assert find_run(old.run) == old
    assert find_run(str(old.folder)) == old
    assert find_run("slope-a") == new
    assert find_run(None) == other


def test_a_run_that_does_not_exist_is_answered_with_the_nearest(places):
    with pytest.raises(NoSuchRun, match="no run in") as caught:
        find_run(None)
    assert "testbed run" in caught.value.hint
    known = a_run("slope", 0)
    with pytest.raises(NoSuchRun) as caught:
        find_run(known.run + "x")
    assert known.run in caught.value.hint


def test_a_folder_that_is_no_run_is_not_looked_for_among_the_runs(places, tmp_path):
    known = a_run("slope", 0)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NoSuchRun, match=f"{empty} has no run.json") as caught:
        find_run(str(empty))
    assert "testbed run FILE" in caught.value.hint
    with pytest.raises(NoSuchRun, match=r"has no run\.json") as caught:
        find_run(str(known.folder.parent))
    assert str(known.folder) in caught.value.hint
    with pytest.raises(NoSuchRun, match=r"has no run\.json") as caught:
        find_run(str(known.logs))
    assert caught.value.hint == f"it is a part of a run: name {known.folder}"
    with pytest.raises(NoSuchRun, match="is a file") as caught:
        find_run(str(known.manifest))
    assert caught.value.hint == f"it is a part of a run: name {known.folder}"


def test_the_folder_of_a_sweep_leads_to_its_runs(places, tmp_path):
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(NoSuchRun, match=r"has no run\.json") as caught:
        find_run(str(tmp_path))
    assert caught.value.hint == f"it is a sweep: its runs are in {tmp_path / 'runs'}"


def test_a_folder_here_with_the_name_of_a_lab_does_not_hide_its_runs(places, tmp_path, monkeypatch):
    known = a_run("slope", 0)
    (tmp_path / "slope").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_run("slope") == known


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"format": 1}', "has format 1; this version reads 2"),
        ('{"format": 99}', "has format 99"),
    ],
)
def test_a_damaged_or_foreign_manifest_is_refused(places, content, complaint):
    run = new_run("slope")
    make_run_folder(run)
    run.manifest.write_text(content)
    with pytest.raises(InputError, match=complaint):
        read_manifest(run)


def test_commands_that_add_warnings_at_once_lose_none(places):
    run = a_run("slope", 0)
    update_manifest(run, warnings=["first"])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: extend_manifest(run, warnings=[str(n)]), range(60)))
    warnings = read_manifest(run)["warnings"]
    assert warnings[0] == "first"
    assert sorted(warnings[1:], key=int) == [str(n) for n in range(60)]


def test_a_list_that_a_manifest_does_not_have_yet_begins(places):
    run = a_run("slope", 0)
    extend_manifest(run, link_changes=[1, 2])
    assert read_manifest(run)["link_changes"] == [1, 2]
