"""Any valid scenario is played to its end, or ends in a defined state; its effects are gone when the lab is down."""

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from support.labs.any_scenario import LAB, scenarios, written
from support.labs.fake_labs import FakePlace, up
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND
from testbed.backends.simulated.play import play as play_simulated
from testbed.lab.down import bring_down
from testbed.lab.play import play
from testbed.places import RunPlace
from testbed.progress import ignore
from testbed.records import lab_names, read_manifest
from testbed.topology import TopologyErrors, load, load_text
from testbed.topology.model import from_json, to_json

SIMULATED_MS = 3_000
FAKE_MS = 120
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(scenarios(SIMULATED_MS, commands=False))
def test_in_virtual_time_a_scenario_ends_and_none_of_its_actions_goes_on(
    scenario: dict[str, Any],
) -> None:
    topology = load_text(written(scenario), "any.yaml")
    assert from_json(to_json(topology)) == topology
    lab = SimulatedLab(topology, RunPlace(Path("any-run")), 0)
    played = play_simulated(lab, lambda seconds: None)
    assert played.end >= played.start + SIMULATED_MS * SECOND // 1000
    assert played.received <= played.expected
    assert not lab.partitions.active
    times = [entry["t_ns"] for entry in played.actions]
    assert times == sorted(times)
    assert all(entry["t_ns"] >= entry["due_ns"] for entry in played.actions)
    begun = sum(entry["action"] in ("partition", "load") for entry in played.actions)
    ended = sum(entry["action"] in ("heal", "unload") for entry in played.actions)
    assert begun == ended
    waiting = sum("when" in event for event in scenario["events"])
    recorded = sum("trigger" in entry["details"] for entry in played.actions)
    assert recorded == waiting  # each has fired, or was missed


@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
@given(scenario=scenarios(FAKE_MS, commands=True))
def test_on_the_fake_backend_down_undoes_the_whole_scenario(
    scenario: dict[str, Any], places: Path
) -> None:
    place = FakePlace()
    with tempfile.NamedTemporaryFile("w", dir=places, suffix=".yaml") as file:
        file.write(written(scenario))
        file.flush()
        source = Path(file.name)
        topology = load(source)
        record = up(topology, source, place)
        try:
            play(record, ignore, make=place)
            manifest = read_manifest(record.run_place)
            assert manifest["status"] == "played"
            assert not place.backend.going_on
        finally:
            bring_down(record.name, ignore, make=place)
    assert lab_names() == []
    assert not place.backend.inspect().created
    place.backend.destroy()


@pytest.mark.parametrize("unknown", ["gauge[*]", "sirene", "tag:upsteam", "gauges[7]"])
@settings(max_examples=30, deadline=None)
@given(scenario=scenarios(SIMULATED_MS, commands=True).filter(lambda one: "siren" in str(one)))
def test_a_scenario_that_names_unknown_nodes_is_refused_with_a_hint(
    scenario: dict[str, Any], unknown: str
) -> None:
    text = re.sub(
        r"\bnodes: (siren|gauges\[\*\])$", f"nodes: {unknown}", written(scenario), flags=re.M
    )
    if text == written(scenario):
        return
    with pytest.raises(TopologyErrors) as caught:
        load_text(text, "any.yaml")
    assert all(problem.hint for problem in caught.value.problems)
    assert all(problem.line for problem in caught.value.problems)


def test_the_lab_of_these_scenarios_is_a_valid_file() -> None:
    load_text(written({"duration": "1s"}), "any.yaml")
    assert LAB["name"] == "valley"
