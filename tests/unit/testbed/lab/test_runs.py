"""The folders in captures/: what they are, which may be removed, and how."""

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import InputError, NoSuchRun, TestbedError
from testbed.lab import runs
from testbed.lab.runs import (
    REMOVED,
    Criteria,
    Kind,
    Status,
    Verdicts,
    entries,
    mark_kept,
    named_entry,
    read_entry,
    refuse_removal,
    remove_runs,
    select,
    sizes_by_part,
)
from testbed.lab.simulate import simulate
from testbed.places import LabPlace, RunPlace
from testbed.progress import ignore
from testbed.records import LabRecord, save_lab, writing
from testbed.topology import load

MINIMAL = Path(__file__).resolve().parents[4] / "topologies" / "minimal.yaml"
NOW_NS = 1_800_000_000_000_000_000
DAY_S = 86_400


def make_run(root: Path, name: str, *, days: float = 0, **changes: Any) -> Path:
    folder = root / name
    (folder / "pcap").mkdir(parents=True)
    (folder / "logs").mkdir()
    (folder / "pcap" / "siren.pcap").write_bytes(bytes(10_000))
    manifest = {
        "format": 2,
        "run": name,
        "lab": "demo",
        "status": "down",
        "created_ns": NOW_NS - int(days * DAY_S * 1e9),
        "backend": {"name": "netns"},
        "topology": {"nodes": [{}, {}]},
        "play": {"start_ns": 1_000_000_000, "end_ns": 4_000_000_000},
        "warnings": [],
    }
    (folder / "run.json").write_text(json.dumps({**manifest, **changes}))
    return folder


def analyze(folder: Path, **summary: Any) -> None:
    (folder / "metrics").mkdir()
    (folder / "summary.json").write_text(json.dumps(summary))


def make_sweep(root: Path, name: str) -> Path:
    folder = root / name
    make_run(folder / "runs", "cell-1")
    (folder / "sweep.json").write_text(
        json.dumps({"format": 2, "sweep": {"lab": "demo", "backend": "simulated"}})
    )
    return folder


@pytest.fixture
def root(places: Path) -> Path:
    folder = (places / "c").resolve()
    folder.mkdir()
    return folder


def one(root: Path, name: str) -> runs.Entry:
    return read_entry(root, name, ())


def nothing(_: runs.Entry) -> None:
    """Ignore what was removed."""


# What there is.


def test_a_run_is_listed_with_its_facts(root):
    folder = make_run(root, "demo-1")
    analyze(folder, expectations=[{"ok": True}, {"ok": False}])
    (folder / "report.html").write_text("x")
    [entry] = entries(root, ())
    assert (entry.name, entry.kind, entry.status) == ("demo-1", Kind.RUN, Status.COMPLETE)
    assert (entry.lab, entry.backend, entry.nodes, entry.duration_s) == ("demo", "netns", 2, 3.0)
    assert entry.analyzed
    assert entry.report
    assert entry.expectations == Verdicts(1, 2)
    assert entry.captures_bytes == 12_288  # whole blocks
    assert entry.size_bytes == 12_288 + 3 * 4_096


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.COMPLETE),
        ({"play": None}, Status.UNPLAYED),
        (
            {"play": None, "warnings": ["the scenario was interrupted while it was played"]},
            Status.INTERRUPTED,
        ),
        ({"status": "up"}, Status.INTERRUPTED),
        ({"status": "starting"}, Status.INTERRUPTED),
        ({"status": "died"}, Status.FAILED),
        ({"backend": {"name": "simulated"}}, Status.SIMULATED),
        ({"status": "???"}, Status.DAMAGED),
        ({"status": 3}, Status.DAMAGED),
        ({"format": None}, Status.DAMAGED),
        ({"lab": []}, Status.DAMAGED),
    ],
)
def test_the_manifest_says_what_became_of_a_run(root, changes, status):
    make_run(root, "demo-1", **changes)
    assert one(root, "demo-1").status is status


def test_a_run_is_up_while_its_lab_is(root):
    make_run(root, "demo-1", status="played")
    make_run(root, "demo-2", status="played")
    place = LabPlace.of("demo")
    place.folder.mkdir(parents=True)
    save_lab(place, LabRecord("demo", "demo-1", str(root / "demo-1"), "netns", "demo.yaml"))
    statuses = {entry.name: entry.status for entry in entries(root)}
    assert statuses == {"demo-1": Status.UP, "demo-2": Status.INTERRUPTED}


def test_a_run_of_a_lab_of_another_state_folder_is_up_while_its_processes_live(root, monkeypatch):
    make_run(root, "demo-1", status="up")

    class Marked:
        run = "demo-1"

    monkeypatch.setattr(runs, "all_marked", lambda: [Marked()])
    assert entries(root)[0].status is Status.UP


def test_a_simulation_runs_until_it_has_ended(root, monkeypatch):
    seen = []

    @contextmanager
    def watched(place: RunPlace):
        with writing(place):
            seen.append(one(root, place.run).status)
            with pytest.raises(InputError, match="being computed"):
                remove_runs(root, [place.run], nothing)
            yield

    monkeypatch.setattr("testbed.lab.simulate.writing", watched)
    run = simulate(load(MINIMAL), MINIMAL, ignore)
    assert seen == [Status.RUNNING]
    assert one(root, run.run).status is Status.SIMULATED


def test_sweeps_are_listed_with_the_number_of_their_runs(root):
    folder = make_sweep(root, "sweep-1")
    entry = one(root, "sweep-1")
    assert (entry.kind, entry.status, entry.runs) == (Kind.SWEEP, Status.INTERRUPTED, 1)
    (folder / "result.json").write_text("{}")
    assert one(root, "sweep-1").status is Status.COMPLETE


def test_runs_are_sorted_by_age_the_newest_first(root):
    for name, days in (("b", 2), ("a", 1), ("c", 3)):
        make_run(root, name, days=days)
    assert [entry.name for entry in entries(root, ())] == ["a", "b", "c"]


def test_no_captures_folder_is_no_run(tmp_path):
    assert entries(tmp_path / "none", ()) == []


# Foreign and damaged folders.


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"format": 2}', "\x00"])
def test_a_run_with_a_damaged_manifest_is_listed_and_never_removed(root, text):
    folder = make_run(root, "demo-1")
    (folder / "run.json").write_text(text)
    assert one(root, "demo-1").status is Status.DAMAGED
    with pytest.raises(InputError, match="damaged"):
        remove_runs(root, ["demo-1"], nothing, force=True)
    assert (folder / "pcap" / "siren.pcap").exists()


def test_foreign_folders_are_listed_and_never_removed(root):
    (root / "notes").mkdir()
    (root / "notes" / "thesis.tex").write_text("x")
    (root / "README.md").write_text("x")
    [entry] = entries(root, ())
    assert (entry.name, entry.kind, entry.size_bytes) == ("notes", Kind.FOREIGN, 4_096)
    with pytest.raises(InputError, match="not the folder of a run"):
        remove_runs(root, ["notes"], nothing, force=True)
    assert (root / "notes" / "thesis.tex").exists()


def test_a_symbolic_link_is_not_followed(root, tmp_path):
    outside = make_run(tmp_path, "outside")
    (root / "link").symlink_to(outside)
    [entry] = entries(root, ())
    assert (entry.status, entry.size_bytes) == (Status.LINK, 0)
    with pytest.raises(InputError, match="symbolic link"):
        remove_runs(root, ["link"], nothing, force=True)
    assert (outside / "run.json").exists()


def test_links_inside_a_run_are_removed_and_their_targets_stay(root, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(bytes(100_000))
    folder = make_run(root, "demo-1")
    (folder / "linked").symlink_to(tmp_path / "precious")
    assert one(root, "demo-1").size_bytes < 100_000
    remove_runs(root, ["demo-1"], nothing)
    assert not folder.exists()
    assert (tmp_path / "precious" / "file").exists()


def test_a_manifest_that_is_a_link_or_a_pipe_is_not_read(root, tmp_path):
    elsewhere = make_run(tmp_path, "elsewhere")
    for name in ("link", "pipe"):
        (root / name).mkdir()
    (root / "link" / "run.json").symlink_to(elsewhere / "run.json")
    os.mkfifo(root / "pipe" / "run.json")
    assert {entry.status for entry in entries(root, ())} == {Status.FOREIGN}


def test_a_summary_that_is_none_is_no_analysis(root):
    folder = make_run(root, "demo-1")
    analyze(folder)
    (folder / "summary.json").write_text("[]")
    assert not one(root, "demo-1").analyzed


# Marks and removal.


def test_a_kept_run_is_removed_only_by_force(root):
    make_run(root, "demo-1")
    assert mark_kept(one(root, "demo-1"), kept=True)
    assert not mark_kept(one(root, "demo-1"), kept=True)
    assert one(root, "demo-1").kept
    with pytest.raises(InputError, match="is kept") as caught:
        remove_runs(root, ["demo-1"], nothing)
    assert "--force" in caught.value.hint
    remove_runs(root, ["demo-1"], nothing, force=True)
    assert entries(root, ()) == []


def test_the_mark_can_be_taken(root):
    make_run(root, "demo-1")
    assert not mark_kept(one(root, "demo-1"), kept=False)
    mark_kept(one(root, "demo-1"), kept=True)
    assert mark_kept(one(root, "demo-1"), kept=False)
    assert not one(root, "demo-1").kept


def test_foreign_folders_cannot_be_marked(root):
    (root / "notes").mkdir()
    with pytest.raises(InputError, match="not the folder of a run"):
        mark_kept(one(root, "notes"), kept=True)
    assert [*(root / "notes").iterdir()] == []


def test_a_run_whose_lab_is_up_is_not_removed_even_by_force(root):
    make_run(root, "demo-1", status="up")
    entry = read_entry(root, "demo-1", {"demo-1"})
    with pytest.raises(InputError, match="is up") as caught:
        refuse_removal(entry, force=True)
    assert "testbed down demo" in caught.value.hint


def test_removal_leaves_the_other_runs_and_no_rest(root):
    for name in ("a", "b", "c"):
        make_run(root, name)
    make_sweep(root, "d")
    removed: list[str] = []
    remove_runs(root, ["b", "d"], lambda entry: removed.append(entry.name))
    assert removed == ["b", "d"]
    assert sorted(path.name for path in root.iterdir()) == ["a", "c"]


def test_an_interrupted_removal_leaves_no_half_run_and_is_completed_by_the_next(root, monkeypatch):
    make_run(root, "a")
    make_run(root, "b")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(runs.shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove_runs(root, ["a"], nothing)
    assert [entry.name for entry in entries(root, ())] == ["b"]
    assert (root / REMOVED).is_dir()
    remove_runs(root, ["b"], nothing)
    assert [*root.iterdir()] == []


def test_a_link_in_place_of_the_folder_for_removals_is_refused(root, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    make_run(root, "a")
    (root / REMOVED).symlink_to(tmp_path / "precious")
    with pytest.raises(TestbedError, match=REMOVED):
        remove_runs(root, ["a"], nothing)
    assert (root / "a" / "run.json").exists()
    assert (tmp_path / "precious" / "file").exists()


def test_captures_are_removed_and_the_manifest_says_so(root):
    folder = make_run(root, "demo-1")
    analyze(folder)
    remove_runs(root, ["demo-1"], nothing, captures_only=True)
    assert [*(folder / "pcap").iterdir()] == []
    assert (folder / "summary.json").exists()
    entry = one(root, "demo-1")
    assert entry.captures_removed
    assert entry.status is Status.COMPLETE
    assert json.loads((folder / "run.json").read_text())["captures_removed"]["bytes"] == 12_288
    assert sorted(path.name for path in root.iterdir()) == ["demo-1"]


# Names.


@pytest.mark.parametrize("name", ["", ".", "..", "/", "../x", "a/pcap", "/etc", REMOVED])
def test_only_folders_directly_in_the_captures_folder_can_be_named(root, name):
    make_run(root, "a")
    with pytest.raises(NoSuchRun):
        named_entry(root, name, ())


def test_a_run_can_be_named_by_its_path(root, monkeypatch):
    make_run(root, "a")
    assert named_entry(root, str(root / "a"), ()).name == "a"
    monkeypatch.chdir(root.parent)
    assert named_entry(root, "c/a/", ()).name == "a"


def test_a_labs_name_does_not_choose_a_run_but_the_hint_names_the_newest(root):
    make_run(root, "demo-1", days=2)
    make_run(root, "demo-2", days=1)
    with pytest.raises(NoSuchRun, match="is a lab") as caught:
        named_entry(root, "demo", ())
    assert "demo-2" in caught.value.hint


def test_a_mistyped_name_is_answered_with_the_nearest(root):
    make_run(root, "demo-1")
    with pytest.raises(NoSuchRun) as caught:
        named_entry(root, "demo-l", ())
    assert "demo-1" in caught.value.hint


def test_sizes_are_told_apart_by_part(root):
    folder = make_run(root, "demo-1")
    analyze(folder)
    (folder / "report.html").write_text("x")
    sizes = sizes_by_part(folder)
    assert sizes["captures"] == 12_288
    assert sizes["report"] == sizes["metrics"] == sizes["other"] == 4_096
    assert sum(sizes.values()) == one(root, "demo-1").size_bytes


# What prune chooses.


def chosen(root: Path, **criteria: Any) -> list[str]:
    return [entry.name for entry in select(entries(root, ()), Criteria(**criteria), NOW_NS).chosen]


def test_prune_chooses_what_meets_all_conditions(root):
    for name, days in (("new", 1), ("old", 10), ("older", 20)):
        make_run(root, name, days=days)
    (root / "older" / "big").write_bytes(bytes(100_000))
    assert chosen(root, older_than_s=5 * DAY_S) == ["old", "older"]
    assert chosen(root, keep_last=2) == ["older"]
    assert chosen(root, larger_than=50_000) == ["older"]
    assert chosen(root, older_than_s=15 * DAY_S, keep_last=3) == []


def test_prune_spares_kept_runs_and_says_so(root):
    make_run(root, "old", days=10)
    mark_kept(one(root, "old"), kept=True)
    selection = select(entries(root, ()), Criteria(keep_last=0), NOW_NS)
    assert selection.chosen == ()
    assert selection.spared == {"old": "it is kept"}


def test_prune_of_captures_spares_runs_without_analysis(root):
    analyze(make_run(root, "analysed"))
    make_run(root, "raw")
    make_sweep(root, "sweep")
    selection = select(entries(root, ()), Criteria(keep_last=0, captures_only=True), NOW_NS)
    assert [entry.name for entry in selection.chosen] == ["analysed"]
    assert set(selection.spared) == {"raw", "sweep"}
    remove_runs(root, ["analysed"], nothing, captures_only=True)
    again = select(entries(root, ()), Criteria(keep_last=0, captures_only=True), NOW_NS)
    assert again.chosen == ()


def test_a_run_of_unknown_age_is_never_old(root):
    make_run(root, "a", created_ns="yesterday")
    assert chosen(root, older_than_s=0.0) == []
