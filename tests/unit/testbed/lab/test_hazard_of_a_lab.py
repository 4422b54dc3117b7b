"""A lab plays a hazard at the speed that is asked for, and records it in its run's folder."""

import json

import pytest

from support.labs.fake_labs import FakePlace, up
from testbed.errors import InputError
from testbed.lab.play import play, set_speed
from testbed.progress import ignore
from testbed.records import read_manifest
from testbed.topology import load

NODES = """\
name: valley
nodes:
  broker: {kind: broker}
  sensor: {kind: sensor, at: [33.7, 133.6]}
  siren: {kind: subscriber, topics: [alerts, readings]}
"""
STORM = """\
scenario:
  duration: 200s
  hazard:
    kind: landslide
    nodes: sensor
    rain: {before: 600mm, series: [100]}
    alerts: {topic: alerts}
"""


def test_a_hazard_is_played_so_many_times_as_fast_and_recorded(place: FakePlace, file) -> None:
    file.write_text(NODES + STORM)
    lab = up(load(file), file, place)
    set_speed(lab, 1_000.0)
    played = play(lab, ignore)
    assert read_manifest(lab.run_place)["topology"]["scenario"]["speed"] == 1_000
    planned = [json.loads(line) for line in lab.run_place.planned.read_text().splitlines()]
    assert played.published == len(planned) > 0
    assert all(publication["at_ns"] < 200_000_000 for publication in planned)
    recorded = json.loads(lab.run_place.hazard.read_text())
    assert (recorded["kind"], recorded["speed"], recorded["sites"]) == ("landslide", 1_000, 1)
    assert [row["site"] for row in recorded["failures"]] == ["sensor"]


def test_a_lab_without_a_scenario_has_nothing_to_play_faster(place: FakePlace, file) -> None:
    file.write_text(NODES)
    with pytest.raises(InputError, match="no scenario to play faster"):
        set_speed(up(load(file), file, place), 20.0)
