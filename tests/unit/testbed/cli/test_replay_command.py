"""The exact output of `replay` and `events`. After an intended change, run once with UPDATE_GOLDEN=1."""

import os
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.cli.commands import events as commands_events
from testbed.cli.commands import replay
from testbed.cli.commands.replay import difference_tables
from testbed.lab.simulate import simulate
from testbed.places import RunPlace
from testbed.progress import ignore
from testbed.recording.difference import difference
from testbed.scenario import Publication
from testbed.topology import load

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "replay"
VALLEY = """
name: valley
seed: 7
nodes:
  broker: {kind: broker, link: lan}
  sensor: {kind: sensor, link: mvno-128k}
  siren: {kind: subscriber, link: 3g-384k, topics: [alerts]}
scenario:
  duration: 2s
  events:
    - {at: 500ms, publish: {from: sensor, topic: alerts, priority: 5, size: 100B, count: 2, period: 500ms}}
    - {at: 700ms, mark: the slope moves}
    - {at: 1200ms, cut: {nodes: siren}}
    - {at: 1500ms, publish: {from: sensor, topic: alerts, priority: 1, size: 100B}}
"""
WRONG = (
    ("replay", "nothing-of-the-kind"),
    ("replay", "valley", "--within", "100"),
    ("replay", "valley", "--on", "valley.yaml"),
    ("replay", "valley", "--from-capture", "pcap"),
    ("replay", "--from-capture", "pcap"),
    ("replay", "--from-capture", "pcap", "--on", "{source}", "--as-planned"),
    ("replay", "--from-capture", "nowhere", "--on", "{source}"),
    ("replay", "--from-capture", "pcap", "--on", "{source}", "--priority", "alerts=6"),
    ("replay", "valley", "--set", "scenario.duration=1s"),
    ("replay", "valley", "--set", "delivery.method=fif0"),
    ("replay", "valley", "--limit", "dealy=1"),
    ("events", "valley", "--kind", "losses"),
    ("events", "valley", "--node", "sirene"),
)


@pytest.fixture
def run(places: Path) -> RunPlace:
    source = places / "valley.yaml"
    source.write_text(VALLEY)
    return simulate(load(source), source, ignore)


def compare_with_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_every_refusal_is_a_sentence_with_a_next_step(run, places, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(places)
    outputs = []
    for arguments in WRONG:
        filled = [argument.format(source="valley.yaml") for argument in arguments]
        done = CliRunner().invoke(app, filled)
        assert done.exit_code == 2, done.output
        output = done.output.replace(str(places), "PLACES").replace(run.run, "RUN")
        outputs.append(f"$ testbed {' '.join(filled)}\n{output}")
    compare_with_golden("refusals.txt", "\n".join(outputs))


def test_all_events_are_shown_in_the_order_of_time(run):
    events = list(commands_events.read_events(run, follow=False))
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    (lost,) = [event for event in events if event["event"] == "lost"]
    assert (lost["node"], lost["priority"]) == ("siren", 1)
    kinds = [event["kind"] for event in events]
    assert kinds.count("publication") == 3
    assert kinds.count("reception") == 2
    assert {"mark", "fault", "connection", "node", "run", "loss"} <= set(kinds)
    named = [event["event"] for event in events if event["kind"] in ("mark", "fault")]
    assert named == ["mark", "cut"]
    assert all(commands_events.render(event).plain for event in events)


def test_a_difference_is_shown_as_a_table_and_none_as_a_sentence():
    alert = Publication(1_500_000_000, "sensor", "alerts", 5, 1000)
    others = [Publication(n * 10**9, "sensor", "readings", 1, 300) for n in range(21)]
    late = Publication(1_700_000_000, "sensor", "alerts", 5, 1000)
    tables = (
        difference_tables(difference([alert], [alert], 10**8)),
        difference_tables(difference([alert, *others], [late], 10**8)),
    )
    console = Console(width=100, record=True, file=StringIO())
    for each in tables:
        console.print(*each)
    compare_with_golden("difference.txt", console.export_text())


def test_a_replay_uses_the_backend_of_the_run_by_default(run, monkeypatch):
    assert replay._own_backend(run) == "simulated"
    monkeypatch.setattr(replay, "read_manifest", lambda _: {"backend": {"name": "fake"}})
    assert replay._own_backend(SimpleNamespace()) is None
