"""Orphans of labs that are gone: found by their mark alone, removed only if no lab owns them."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.backends.docker import build_folder as building
from testbed.backends.docker.containers import Container
from testbed.errors import MissingCapability
from testbed.keeper.processes import Process, marked_process
from testbed.lab import orphans
from testbed.lab.orphans import (
    OrphanKind,
    dead_labs,
    find_orphans,
    orphan_containers,
    orphan_processes,
    remove_orphans,
    stale_locks,
    unfinished_runs,
)
from testbed.places import LabPlace, marks
from testbed.records import LabRecord, locked, save_lab

Start = Callable[..., Process]


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch, places: Path) -> None:
    """These tests are about what one user's folders hold, not about the containers of this machine."""
    monkeypatch.setattr(orphans, "all_containers", list)
    monkeypatch.setenv("TMPDIR", str(places))
    monkeypatch.setattr(building.tempfile, "tempdir", str(places))


@pytest.fixture
def start() -> Iterator[Start]:
    """start(lab, run, role): a running process that carries these marks."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(lab: LabPlace, run: str = "run-1", role: str = "keeper") -> Process:
        env = {"PATH": os.environ["PATH"], **marks(lab, run, role)}
        child = subprocess.Popen(["sleep", "600"], env=env)
        children.append(child)
        found = marked_process(child.pid)
        while found is None:  # it has not become `sleep` yet
            time.sleep(0.01)
            found = marked_process(child.pid)
        return found

    yield begin
    for child in children:
        child.kill()
        child.wait()


def a_lab(name: str, run: str = "run-1") -> LabPlace:
    place = LabPlace.of(name)
    place.folder.mkdir(parents=True)
    save_lab(place, LabRecord(name, run, f"/captures/{run}", "netns", "/file.yaml"))
    return place


def a_container(lab: LabPlace, run: str = "run-1", state: str = "exited") -> Container:
    return Container("4711", f"{run}-broker", lab.folder, run, state, time.time() - 60)


def test_a_process_whose_lab_folder_is_gone_is_an_orphan(start: Start, places: Path) -> None:
    lost, kept = LabPlace.of("lost"), a_lab("kept")
    orphan, owned = start(lost), start(kept)
    assert orphan_processes([orphan, owned]) == [orphan]


def test_a_process_of_an_earlier_run_is_an_orphan_though_the_lab_is_up_again(start: Start) -> None:
    lab = a_lab("again", run="run-2")
    old, new = start(lab, "run-1"), start(lab, "run-2")
    assert orphan_processes([old, new]) == [old]


def test_a_lab_that_has_no_record_yet_owns_its_processes(start: Start) -> None:
    lab = LabPlace.of("young")
    lab.folder.mkdir(parents=True)
    assert orphan_processes([start(lab)]) == []


def test_a_folder_that_may_not_be_looked_into_is_not_called_gone(monkeypatch, start, places):
    process = start(LabPlace(places / "theirs" / "lab"))

    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "lstat", refuse)
    assert orphan_processes([process]) == []


def test_containers_are_orphans_as_processes_are_whether_they_run_or_not(places: Path) -> None:
    lost, kept = LabPlace.of("lost"), a_lab("kept")
    containers = [
        a_container(lost),
        a_container(lost, state="running"),
        a_container(kept),
        a_container(kept, "run-0"),
    ]
    assert orphan_containers(containers) == [containers[0], containers[1], containers[3]]


def test_only_labs_of_one_state_folder_can_be_meant(start: Start, places: Path) -> None:
    ours, theirs = start(LabPlace.of("lost")), start(LabPlace(places / "other" / "lost"))
    assert orphan_processes([ours, theirs], places / "s") == [ours]
    containers = [
        a_container(LabPlace.of("lost")),
        a_container(LabPlace(places / "other" / "lost")),
    ]
    assert orphan_containers(containers, places / "s") == containers[:1]


def test_a_lab_without_a_keeper_is_dead(start: Start) -> None:
    alive, dead = a_lab("alive"), a_lab("dead")
    keeper, node = start(alive), start(dead, role="node:siren")
    (found,) = dead_labs([keeper, node], [])
    assert (found.name, found.remedy, found.removable) == ("dead", "testbed down dead", True)


def test_a_lab_that_a_command_works_on_is_not_dead(places: Path) -> None:
    a_lab("busy")
    with locked("busy"):
        assert dead_labs([], []) == []
    assert [found.name for found in dead_labs([], [])] == ["busy"]


def test_a_dead_lab_of_another_state_folder_is_reported_but_not_touched(places: Path) -> None:
    elsewhere = LabPlace(places / "other" / "far")
    elsewhere.folder.mkdir(parents=True)
    (found,) = dead_labs([], [a_container(elsewhere)])
    assert found.remedy == f"TESTBED_STATE={places / 'other'} testbed down far"
    assert not found.removable


@pytest.mark.parametrize("status", ["starting", "up", "played"])
def test_a_run_whose_lab_vanished_is_reported_and_stays(places: Path, status: str) -> None:
    folder = places / "c" / "valley-1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"lab": "valley", "status": status}))
    (found,) = unfinished_runs([], [])
    assert (found.what, found.name, found.lab) == (OrphanKind.RUN, "valley-1", "valley")
    assert not found.removable
    assert unfinished_runs([], [a_container(LabPlace.of("valley"), "valley-1", "running")]) == []
    remove_orphans(places / "s")
    assert (folder / "run.json").exists()


@pytest.mark.parametrize("document", ['{"status": "down"}', '{"status": "died"}', "[]", "{ no"])
def test_runs_that_ended_or_cannot_be_read_are_no_orphans(places: Path, document: str) -> None:
    folder = places / "c" / "valley-1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(document)
    assert unfinished_runs([], []) == []


def test_a_lock_is_stale_when_no_process_holds_it(places: Path) -> None:
    with locked("valley"), locked("valley", "playing"):
        assert stale_locks() == []
    left = places / "s" / ".valley.changing"
    left.touch()
    (places / "s" / ".valley.notes").touch()
    assert stale_locks() == [left]
    assert remove_orphans(places / "s").removed == (f"lock {left}",)
    assert not left.exists()
    assert (places / "s" / ".valley.notes").exists()


def test_a_build_folder_is_left_when_its_builder_is_dead(places: Path) -> None:
    lab = a_lab("builder")
    with building.build_folder(lab) as used:
        os.utime(used, (0, 0))
        assert building.abandoned_build_folders() == []
        assert "in use" in building.remove_abandoned(used)
    left = places / "testbed-image-0123456789abcdef"
    left.mkdir()
    assert building.abandoned_build_folders() == [], "its builder may not hold the lock yet"
    os.utime(left, (0, 0))
    (places / "testbed-image-link").symlink_to("/")
    assert building.abandoned_build_folders() == [left]
    assert remove_orphans(places / "s").removed == (f"folder {left}",)
    assert not left.exists()


def test_orphan_processes_are_ended_and_no_others(start: Start, places: Path) -> None:
    lost, kept = LabPlace.of("lost"), a_lab("kept")
    orphan, owned = start(lost), start(kept)
    cleared = remove_orphans(places / "s")
    assert cleared.removed == (f"ended keeper of {lost.folder} (process {orphan.pid})",)
    assert marked_process(orphan.pid) is None
    assert marked_process(owned.pid) == owned


def test_a_process_that_took_a_dead_ones_number_is_not_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    innocent = start(LabPlace.of("lost"))
    earlier = replace(innocent, started=innocent.started - 1)
    looks = iter([[earlier], [], []])
    monkeypatch.setattr(orphans, "all_marked", lambda: next(looks))
    remove_orphans(places / "s")
    assert marked_process(innocent.pid) == innocent


def test_without_an_engine_the_rest_is_found_and_the_gap_is_reported(
    monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    def refuse() -> list[Container]:
        raise MissingCapability("no Docker engine answers")

    monkeypatch.setattr(orphans, "all_containers", refuse)
    a_lab("dead")
    found = find_orphans()
    assert "dead" in [orphan.name for orphan in found.orphans]
    assert found.unseen == ("containers were not looked for: no Docker engine answers",)
    assert remove_orphans(places / "s").unseen == found.unseen
