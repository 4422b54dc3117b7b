"""`testbed runs`: what it prints, asks and refuses."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.cli.commands import runs as command
from testbed.lab.simulate import simulate
from testbed.lab.start import disk
from testbed.places import RunPlace
from testbed.progress import ignore
from testbed.records import update_manifest
from testbed.topology import load

ROOT = Path(__file__).resolve().parents[4]
MINIMAL = ROOT / "topologies" / "minimal.yaml"


def called(*arguments: object, text: str | None = None) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)], input=text)


def document(*arguments: object, code: int = 0) -> Any:
    done = called(*arguments, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def error(*arguments: object, code: int = 2) -> str:
    found = document(*arguments, code=code)["error"]
    return f"{found['message']} | {found['hint']}"


@pytest.fixture
def run(places: Path) -> RunPlace:
    return simulate(load(MINIMAL, overrides=("scenario.duration=4s",)), MINIMAL, ignore)


def test_without_runs_the_list_says_how_to_make_one(places):
    assert document("runs", "list")["runs"] == []
    assert "testbed run FILE" in called("runs", "list").stdout


def test_the_list_has_a_row_and_an_object_for_each_run(run):
    found = document("runs", "list")
    [one] = found["runs"]
    assert (one["name"], one["lab"], one["status"]) == (run.run, "minimal", "simulated")
    assert one["size_bytes"] == found["total_bytes"] > 0
    assert not one["analyzed"]
    assert not one["kept"]
    shown = called("runs", "list").stdout
    assert run.run in shown
    assert "simulated" in shown
    assert "are free" in shown


def test_strange_names_are_shown_as_escapes(run):
    (run.folder.parent / "a\x1b[31m\n[bold]").mkdir()
    (run.folder.parent / "\udcff").mkdir()
    names = [one["name"] for one in document("runs", "list")["runs"]]
    assert "a\\x1b[31m\\n[bold]" in names
    assert "\\xff" in names
    shown = called("runs", "list").stdout
    assert "\x1b[31m" not in shown
    assert "[bold]" in shown


def test_show_has_the_command_that_repeats_the_run(run):
    found = document("runs", "show", run.run)
    assert found["repeat"] == [
        *("testbed", "simulate", str(MINIMAL), "--name", "minimal"),
        *("--set", "scenario.duration=4s", "--seed", "1"),
    ]
    assert found["sizes_bytes"]["captures"] > 0
    assert "python" in found["versions"]
    shown = called("runs", "show", run.run).stdout
    assert "not analysed" in shown
    assert "testbed simulate" in shown


def test_show_names_the_runs_copy_of_a_file_that_was_edited(run, tmp_path):
    edited = tmp_path / "edited.yaml"
    edited.write_text("name: other\n")
    update_manifest(run, source=str(edited))
    assert str(run.topology) in document("runs", "show", run.run)["repeat"]


def test_show_says_what_is_wrong(run):
    assert "no run 'nonsense'" in error("runs", "show", "nonsense")
    run.manifest.write_text("{")
    assert "damaged" in error("runs", "show", run.run)


def test_keep_marks_runs_and_takes_the_mark(run):
    assert document("runs", "keep", run.run)["changed"] == [run.run]
    assert document("runs", "list")["runs"][0]["kept"]
    assert document("runs", "keep", run.run)["changed"] == []
    assert "is kept" in error("runs", "rm", run.run, "--yes")
    assert document("runs", "keep", "--off", run.run)["changed"] == [run.run]
    assert document("runs", "rm", run.run, "--yes")["removed"] == [run.run]
    assert not run.folder.exists()


def test_rm_asks_and_a_no_leaves_everything(run, monkeypatch):
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(command, "sys", terminal)
    monkeypatch.setattr(command.typer, "confirm", lambda *_, **__: False)
    done = called("runs", "rm", run.run)
    assert done.exit_code == 1
    assert "nothing was removed" in done.output
    assert run.folder.exists()
    monkeypatch.setattr(command.typer, "confirm", lambda *_, **__: True)
    assert called("runs", "rm", run.run).exit_code == 0
    assert not run.folder.exists()


def test_rm_without_a_terminal_needs_yes(run):
    assert "--yes" in error("runs", "rm", run.run)
    assert run.folder.exists()


def test_rm_refuses_before_it_removes_anything(run):
    assert "no run 'nonsense'" in error("runs", "rm", run.run, "nonsense", "--yes")
    (run.folder.parent / "notes").mkdir()
    assert "not the folder of a run" in error("runs", "rm", run.run, "notes", "--yes", "--force")
    assert "is not directly in" in error("runs", "rm", "/etc", "--yes")
    assert run.folder.exists()


def test_prune_needs_a_condition_with_its_unit(run):
    assert "at least one of" in error("runs", "prune", "--yes")
    assert "--older-than" in error("runs", "prune", "--older-than", "30")
    assert "--older-than" in error("runs", "prune", "--older-than", "soon")
    assert "--larger-than" in error("runs", "prune", "--larger-than", "1gb")
    assert run.folder.exists()


@pytest.mark.parametrize("age", ["30d", "12h", "0.5d", "90min"])
@pytest.mark.parametrize("size", ["1GB", "1GiB", "500MB"])
def test_a_young_small_run_meets_no_condition(run, age, size):
    found = document("runs", "prune", "--older-than", age, "--larger-than", size, "--yes")
    assert found["chosen"] == []
    assert run.folder.exists()


def test_a_dry_run_shows_what_would_be_removed(run):
    found = document("runs", "prune", "--keep-last", 0, "--dry-run")
    assert found["chosen"] == [run.run]
    assert found["removed"] == []
    assert found["freed_bytes"] > 0
    assert run.folder.exists()
    assert "would be removed" in called("runs", "prune", "--keep-last", 0, "--dry-run").stdout


def test_prune_removes_what_meets_the_conditions_and_spares_what_is_kept(run):
    other = simulate(load(MINIMAL), MINIMAL, ignore)
    document("runs", "keep", other.run)
    found = document("runs", "prune", "--larger-than", "1kB", "--yes")
    assert found["removed"] == [run.run]
    assert found["spared"] == {other.run: "it is kept"}
    assert found["freed_bytes"] > 0
    assert other.folder.exists()
    assert not run.folder.exists()


def test_after_an_error_the_document_has_what_is_gone(run, monkeypatch):
    def interrupted(_root: Path, names: list[str], removed: Any, **_: object) -> None:
        removed(command.named_entry(run.folder.parent, names[0]))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "remove_runs", interrupted)
    found = document("runs", "prune", "--keep-last", 0, "--yes", code=130)
    assert found["removed"] == [run.run]


def test_analyze_says_that_the_captures_were_removed(run):
    (run.folder / "metrics").mkdir()
    (run.folder / "summary.json").write_text("{}")
    found = document("runs", "prune", "--keep-last", 0, "--captures-only", "--yes")
    assert found["removed"] == [run.run]
    assert [*run.trace.iterdir()] == []
    sentence = error("analyze", run.run, code=1)
    assert "were removed by `testbed runs prune --captures-only`" in sentence
    assert "its metrics and its report are still there" in sentence.lower()
    assert (run.folder / "summary.json").read_text() == "{}"
    assert "removed" in called("runs", "show", run.run).stdout


# Before a run.


def test_plan_and_validate_show_what_a_run_takes(places):
    plan = document("plan", MINIMAL)["disk"]
    assert plan["total_bytes"] == sum(
        plan[key] for key in ("captures_bytes", "logs_bytes", "results_bytes")
    )
    assert document("validate", MINIMAL)["disk"] == [{"file": str(MINIMAL), **plan}]
    assert "a run takes about" in called("plan", MINIMAL).stdout


def test_plan_warns_of_a_full_disk(places, monkeypatch):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    assert "has 10 B free" in called("plan", MINIMAL).stdout


def test_a_sweep_shows_what_all_its_cells_take(places, tmp_path, monkeypatch):
    arguments = ["sweep", MINIMAL, "--trials", 5, "--dry-run", "--to", tmp_path / "sweep"]
    five = document(*arguments)["disk"]["total_bytes"]
    one = document("sweep", MINIMAL, "--dry-run", "--to", tmp_path / "sweep")["disk"]
    assert five == 5 * one["total_bytes"]
    assert "they take about" in called(*arguments).stdout
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    assert "5 runs take about" in called(*arguments).stdout
