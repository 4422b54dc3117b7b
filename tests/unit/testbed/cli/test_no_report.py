"""`--no-report`: a run is measured, no report is written, and the terminal says how to write it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from testbed.cli import measurement
from testbed.cli.app import app
from testbed.cli.commands import analyze, replay
from testbed.lab.simulate import simulate
from testbed.places import RunPlace
from testbed.progress import ignore
from testbed.topology import load

FILE = """
name: valley
nodes:
  broker: {kind: broker, link: lan}
  sensor: {kind: sensor, link: lan}
  siren: {kind: subscriber, link: lan, topics: [alerts]}
scenario:
  duration: 1s
  events:
    - {at: 0s, publish: {from: sensor, topic: alerts, priority: 5, size: 100B}}
"""
SUMMARY: dict[str, Any] = {
    "fidelity": {"ok": True, "reasons": []},
    "messages": {},
    "by_priority": {},
}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose reports a command writes; no run is analysed."""
    runs: list[str] = []

    def write(place: RunPlace, _emit: object) -> Path:
        runs.append(place.run)
        return place.folder / "report.html"

    for module in (measurement, analyze, replay):
        monkeypatch.setattr(module, "write_run_report", write)
    for module in (measurement, replay):
        monkeypatch.setattr(module, "analyze_run", lambda *_: SUMMARY)
        monkeypatch.setattr(module, "summary_tables", lambda _: [])
    monkeypatch.setattr(replay, "compared", lambda *_: {"ok": True, "quantities": []})
    monkeypatch.setattr(replay, "judged", lambda *_: {"limits": [], "worse": []})
    monkeypatch.setattr(replay, "refuse_unjudged", lambda *_: None)
    monkeypatch.setattr(replay, "comparison_tables", lambda _: [])
    monkeypatch.setattr(replay, "exceeded", lambda _: [])
    return runs


@pytest.fixture
def file(places: Path) -> Path:
    path = places / "valley.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def run(file: Path) -> RunPlace:
    return simulate(load(file), file, ignore)


def commands(file: Path, run: RunPlace) -> list[list[str]]:
    return [
        ["run", str(file), "--backend", "simulated"],
        ["simulate", str(file)],
        ["analyze", run.run],
        ["replay", run.run],
    ]


@pytest.mark.parametrize("number", range(4))
def test_a_report_is_written_unless_the_command_says_no(written, file, run, number):
    command = commands(file, run)[number]
    with_report = CliRunner().invoke(app, [*command, "--json"])
    assert with_report.exit_code == 0, with_report.output
    assert json.loads(with_report.stdout)["report"].endswith("report.html")
    assert len(written) == 1

    without = CliRunner().invoke(app, [*command, "--no-report", "--json"])
    assert without.exit_code == 0, without.output
    assert json.loads(without.stdout)["report"] is None
    assert len(written) == 1


@pytest.mark.parametrize("number", range(4))
def test_the_terminal_says_how_to_write_the_report(written, file, run, monkeypatch, number):
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, [*commands(file, run)[number], "--no-report"])
    assert done.exit_code == 0, done.output
    assert "no report was written: `testbed report valley" in done.stdout
    assert written == []


def test_many_runs_are_measured_without_their_reports(written, file, run, monkeypatch):
    other = simulate(load(file), file, ignore)
    assert other.run != run.run
    from analysis import batch
    from analysis.stats import trials

    def measured(folders: list[Path], *_: object, **__: object) -> list[Any]:
        return [
            SimpleNamespace(folder=folder, error=None, run=object(), summary=SUMMARY)
            for folder in folders
        ]

    monkeypatch.setattr(batch, "analyze_runs", measured)
    monkeypatch.setattr(trials, "trials_of", lambda _: [])
    monkeypatch.setattr(trials, "experiments", lambda _: [])
    shown: list[Any] = []
    monkeypatch.setattr(analyze, "batch_tables", lambda document: shown.append(document) or [])
    done = CliRunner().invoke(app, ["analyze", run.run, other.run, "--no-report"])
    assert done.exit_code == 0, done.output
    assert [row["report"] for row in shown[0]["runs"]] == [None, None]
    assert "no reports were written: `testbed report RUN` writes the report of a run" in done.stdout
    assert written == []
