"""`--set PATH=VALUE` has the effect of an edit of the file, and the same messages."""

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.topology import TopologyErrors, load_text
from testbed.topology.model import Topology, from_json, to_json
from testbed.topology.parse.overrides import parse_override
from testbed.topology.profiles import PROFILES

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "topology" / "overrides.txt"
VALLEY = """\
name: valley
seed: 1
links:
  profiles:
    mvno: {up: {rate: 8kB/s, delay: 60ms}, down: {rate: 16kB/s}}
groups:
  sensors: {kind: sensor, count: 4, link: mvno}
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, link: 3g-384k, topics: [alerts]}
scenario:
  duration: 10s
  events:
    - {at: 0s, publish: {from: "sensors[*]", topic: alerts, size: 300B, period: 1s}}
    - {at: 5s, publish: {from: "sensors[0]", topic: alerts, priority: 5, size: 1kB, count: 5, period: 1s}}
"""
WRONG = (
    "delivery.method=fif0",
    "delivry.method=fifo",
    "links.profiles.mvnoo.up.rate=4kB/s",
    "links.profiles.mvno.up.rate=4",
    "links.profiles.mvno.upp.rate=4kB/s",
    "links.profiles.mvno.up.rate=",
    "groups.sensor.count=3",
    "groups.sensors.count=none",
    "groups.sensors.count=0",
    "nodes.sirene.link=lan",
    "nodes.siren.link=mvno-218k",
    "nodes.siren=[",
    "nodes.siren={kind: siren}",
    "scenario.events[2].publish.size=1kB",
    "scenario.events[1].publish.size=1",
    "scenario.events.at=1s",
    "scenario.duration.s=4",
    "space.tilt[0]=3",
    "nodes.extra={}",
    "groups.sensor={kind: sensor, count: 2}",
    "links.profiles.mvnoo={both: {rate: 8kB/s}}",
)


def load(*overrides: str) -> Topology:
    return load_text(VALLEY, "valley.yaml", overrides=overrides)


def edited(path: list[str | int], value: Any) -> Topology:
    """The oracle: the file's own text with another value in it."""
    data = yaml.safe_load(VALLEY)
    part = data
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return load_text(yaml.safe_dump(data), "valley.yaml")


def without_record(topology: Topology) -> Topology:
    return replace(topology, overrides=())


CASES: dict[str, tuple[list[str | int], st.SearchStrategy[Any]]] = {
    "seed": (["seed"], st.integers(0, 2**63 - 1)),
    "groups.sensors.count": (["groups", "sensors", "count"], st.integers(1, 60)),
    "links.profiles.mvno.up.rate": (
        ["links", "profiles", "mvno", "up", "rate"],
        st.integers(1, 999).map(lambda number: f"{number}kB/s"),
    ),
    "nodes.siren.link": (["nodes", "siren", "link"], st.sampled_from([*PROFILES, "mvno"])),
    "scenario.events[1].publish.size": (
        ["scenario", "events", 1, "publish", "size"],
        st.integers(1, 9_999).map(lambda number: f"{number}B"),
    ),
    "scenario.events[1].publish.priority": (
        ["scenario", "events", 1, "publish", "priority"],
        st.integers(1, 5),
    ),
    "delivery": (
        ["delivery"],
        st.sampled_from(["fifo", "preemptive"]).map(lambda m: {"method": m}),
    ),
}


@given(st.data())
def test_to_set_a_value_is_to_edit_the_file(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(CASES)))
    steps, values = CASES[path]
    value = data.draw(values)
    text = json.dumps(value) if isinstance(value, dict) else str(value)
    assert without_record(load(f"{path}={text}")) == edited(steps, value)


def test_sections_that_the_file_leaves_out_are_made() -> None:
    assert load("delivery.method=preemptive").delivery.method == "preemptive"
    assert load("deadlines.5=2s").deadlines == ((5, 2.0),)


def test_an_override_completes_a_node_that_has_only_a_name() -> None:
    bare = VALLEY.replace("  broker: {kind: broker}", "  broker:")
    topology = load_text(bare, "valley.yaml", overrides=["nodes.broker.kind=broker"])
    assert without_record(topology) == without_record(load())


def test_overrides_are_kept_with_the_topology() -> None:
    topology = load("delivery.method=preemptive", "seed=7")
    assert topology.overrides == (("delivery.method", "preemptive"), ("seed", "7"))
    assert from_json(json.loads(json.dumps(to_json(topology)))) == topology


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_built_in_profile_keeps_what_is_not_set(name: str) -> None:
    topology = load(f"links.profiles.{name}.up.rate=4kB/s", f"nodes.siren.link={name}")
    built_in = PROFILES[name]
    changed = replace(built_in, up=replace(built_in.up, rate_bps=32_000.0))
    assert topology.profile(name) == changed


def test_a_rate_for_both_directions_of_a_built_in_profile_holds_for_both() -> None:
    profile = load("links.profiles.3g-384k.both.rate=4kB/s").profile("3g-384k")
    assert profile.up.rate_bps == profile.down.rate_bps == 32_000.0
    assert profile.down.queue_bytes == PROFILES["3g-384k"].down.queue_bytes


def test_settings_for_both_directions_of_a_built_in_profile_hold_together_and_one_by_one() -> None:
    path = "links.profiles.3g-384k.both"
    at_once = load(f"{path}={{rate: 4kB/s, delay: 700ms}}").profile("3g-384k")
    assert load(f"{path}.rate=4kB/s", f"{path}.delay=700ms").profile("3g-384k") == at_once
    for shape, built_in in (
        (at_once.up, PROFILES["3g-384k"].up),
        (at_once.down, PROFILES["3g-384k"].down),
    ):
        assert shape == replace(built_in, rate_bps=32_000.0, delay_s=0.7)


def test_a_setting_for_one_direction_precedes_one_for_both() -> None:
    values = ["links.profiles.3g-384k.up.rate=4kB/s", "links.profiles.3g-384k.both={rate: 8kB/s}"]
    for order in (values, values[::-1]):
        profile = load(*order).profile("3g-384k")
        assert (profile.up.rate_bps, profile.down.rate_bps) == (32_000.0, 64_000.0)


def test_a_problem_in_the_file_itself_keeps_its_line() -> None:
    with pytest.raises(TopologyErrors) as caught:
        load("groups.sensors.count=1", "scenario.events[1].publish.from=sensors[3]")
    assert [(one.file, one.line) for one in caught.value.problems] == [
        ("--set scenario.events[1].publish.from", None)
    ]
    with pytest.raises(TopologyErrors) as caught:
        load_text(
            VALLEY.replace("sensors[0]", "sensors[3]"),
            "v.yaml",
            overrides=["groups.sensors.count=2"],
        )
    assert [(one.file, one.line) for one in caught.value.problems] == [("v.yaml", 15)]


def test_mistakes_are_reported_with_their_place_and_a_hint() -> None:
    outputs = []
    for override in WRONG:
        with pytest.raises(TopologyErrors) as caught:
            load(override)
        outputs.append(f"$ --set '{override}'\n{caught.value}\n")
    actual = "\n".join(outputs)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(actual, encoding="utf-8")
    assert actual == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["seed", "=1", "a..b=1", "events[x]=1", "a[0=1", ".a=1"])
def test_text_that_is_no_path_and_value_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--set"):
        parse_override(text)


def test_nothing_is_set_twice() -> None:
    with pytest.raises(InputError, match="set twice"):
        load("seed=1", "seed=2")


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_makes_anything_but_a_topology_or_an_input_error(path: str, value: str) -> None:
    with suppress(InputError):
        load(f"{path}={value}")
