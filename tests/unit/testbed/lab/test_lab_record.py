"""Messages injected while a scenario is played are accepted, waited for and recorded beside it."""

import json
from dataclasses import replace
from importlib.metadata import version

from support.labs.fake_labs import LAB, up
from testbed import __version__
from testbed.lab.inject import inject
from testbed.lab.play import play
from testbed.lab.run_record import injected_since, publications_in
from testbed.lab.simulate import simulate
from testbed.progress import StageStarted, Warned, ignore
from testbed.records import read_manifest
from testbed.topology import load_text
from testbed.topology.model import Topology

VALLEY = """
name: valley
nodes:
  broker: {kind: broker, link: lan}
  sensor: {kind: sensor, link: mvno-128k}
  siren: {kind: subscriber, link: 3g-384k, topics: [alerts]}
scenario:
  duration: 2s
  events:
    - {at: 500ms, publish: {from: sensor, topic: alerts, priority: 5, size: 100B, count: 3, period: 500ms}}
"""


def valley() -> Topology:
    return load_text(VALLEY, "valley.yaml")


def inject_when(stage, record):
    """A listener that injects once, when this stage begins."""

    def listen(event):
        if isinstance(event, StageStarted) and event.stage == stage:
            inject(record, "sensor", "alerts", 5, 200)

    return listen


def test_messages_injected_while_a_scenario_is_played_are_expected_too(place, file):
    record = up(LAB, file, place)
    played = play(record, inject_when("playing the scenario", record))
    assert (played.published, played.expected, played.received, played.settled) == (4, 4, 4, True)
    (entry,) = read_manifest(record.run_place)["injected"]
    assert (entry["node"], entry["topic"], entry["priority"], entry["size"]) == (
        *("sensor", "alerts", 5, 200),
    )
    assert entry["id"] == f"{2 << 32 | 4:016x}"


def test_messages_injected_while_others_are_awaited_are_awaited_too(place, file):
    record = up(LAB, file, place)
    played = play(record, inject_when("waiting for messages under way", record))
    assert (played.expected, played.received, played.settled) == (4, 4, True)


def test_an_injected_message_does_not_replace_a_missing_one(place, file):
    place.unreachable = frozenset({"siren"})
    record = up(replace(LAB, scenario=replace(LAB.scenario, settle_s=0.2)), file, place)
    seen = []

    def listen(event):
        seen.append(event)
        inject_when("playing the scenario", record)(event)

    assert not play(record, listen).settled
    assert any("4 of 4 deliveries" in each.text for each in seen if isinstance(each, Warned))


def test_messages_injected_before_the_scenario_are_no_part_of_it(place, file):
    record = up(LAB, file, place)
    inject(record, "sensor", "alerts", 5, 200)
    played = play(record, ignore)
    assert (played.expected, played.received) == (3, 3)
    assert len(injected_since(record.run_place, 0, 0)) == 1


def test_a_simulated_run_is_on_record_with_no_lateness(places):
    source = places / "valley.yaml"
    source.write_text(VALLEY)
    run = simulate(valley(), source, ignore)
    rows = publications_in(run)
    assert [row.at_ns for row in rows] == [500_000_000, 1_000_000_000, 1_500_000_000]
    assert all(row.planned and row.late_ns == 0 for row in rows)
    play_of = read_manifest(run)["play"]
    assert play_of["publications"] == {
        "planned": 3,
        "published": 3,
        "unplanned": 0,
        "never_published": 0,
    }
    assert play_of["lateness"] == {"n": 3, "p50_s": 0.0, "p99_s": 0.0, "max_s": 0.0}


def test_a_run_without_a_record_gets_one_from_its_logs(places):
    source = places / "valley.yaml"
    source.write_text(VALLEY)
    run = simulate(valley(), source, ignore)
    recorded = run.published.read_text()
    run.published.unlink()
    assert len(publications_in(run)) == 3
    assert run.published.read_text() == recorded
    assert json.loads(recorded.splitlines()[0])["node"] == "sensor"


def test_the_manifest_says_which_programs_made_the_run(places):
    source = places / "valley.yaml"
    source.write_text(VALLEY)
    recorded = read_manifest(simulate(valley(), source, ignore))["versions"]
    assert recorded["testbed"] == __version__
    assert recorded["websockets"] == version("websockets")
    assert recorded["nodes"].startswith("sha256:")
    assert len(recorded["nodes"]) == 7 + 64
