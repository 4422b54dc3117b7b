"""Captured messages become a script: which sensor publishes for which origin, at which level, and the notes on it."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.recording.from_capture import matches, read_priorities, script_from_capture
from testbed.topology import load_text

START_NS = 1_700_000_000_000_000_000
LAB = load_text(
    """
name: valley
groups: {sensors: {kind: sensor, count: 2, link: lan}}
nodes:
  broker: {kind: broker, link: lan}
  siren: {kind: subscriber, link: lan, topics: [alerts, alerts/slope]}
""",
    "valley.yaml",
)
LEVELS = read_priorities([])


class Captured(NamedTuple):
    at_ns: int
    origin: str
    topic: str = "alerts"
    size: int = 100
    priority: int | None = 5
    qos: int | None = None


def test_known_sensors_publish_themselves_and_sensors_in_turn_for_unknown_origins():
    captured = [
        Captured(START_NS, "sensors-1"),
        Captured(START_NS + 10, "#7"),
        Captured(START_NS + 20, "10.0.0.9"),
        Captured(START_NS + 30, "#7"),
    ]
    script, notes = script_from_capture(captured, LAB, LEVELS)
    assert [(one.at_ns, one.node) for one in script.publications] == [
        (0, "sensors-1"),
        (10, "sensors-0"),
        (20, "sensors-1"),
        (30, "sensors-0"),
    ]
    assert notes == [
        "sensors of the lab publish in turn for publishers that it does not have: "
        "sensors-0 for #7, sensors-1 for 10.0.0.9"
    ]
    assert script.lasts_s > 30 / 1e9


def test_levels_are_by_topic_then_their_own_then_by_qos():
    levels = read_priorities(["alerts/#=4", "qos1=2"])
    assert levels.of(Captured(0, "a", "alerts/slope", priority=1)) == 4
    assert levels.of(Captured(0, "a", "readings", priority=1)) == 1
    assert levels.of(Captured(0, "a", "readings", priority=None, qos=1)) == 2
    assert levels.of(Captured(0, "a", "readings", priority=None, qos=2)) == 5


@pytest.mark.parametrize(
    "text", ["alerts", "alerts=6", "=3", "alerts=x", "alerts=0", "alerts=99999"]
)
def test_an_invalid_level_is_refused(text):
    with pytest.raises(InputError, match="is not a topic with a level from 1 to 5") as caught:
        read_priorities([text])
    assert caught.value.hint == "write it like --priority alerts/#=5, or qos1=4"


def test_unpublishable_messages_and_topics_without_subscribers_are_noted():
    captured = [Captured(START_NS, "sensors-0"), Captured(START_NS, "sensors-0", "", 5)]
    captured += [Captured(START_NS + 5, "sensors-0", "rain", priority=None, qos=0)]
    script, notes = script_from_capture(captured, LAB, LEVELS)
    assert len(script.publications) == 2
    assert notes == [
        "1 messages are left out: their topic or size cannot be ours",
        "MQTT has no priorities: levels are by --priority, else by QoS",
        "nobody in the lab wants rain",
    ]
    with pytest.raises(InputError, match="no message that a lab could publish") as caught:
        script_from_capture([], LAB, LEVELS)
    assert "MQTT without TLS" in caught.value.hint


def test_a_lab_without_sensors_cannot_publish():
    hub = load_text("name: hub\nnodes: {broker: {kind: broker, link: lan}}", "hub.yaml")
    with pytest.raises(InputError, match="hub has no sensors"):
        script_from_capture([Captured(0, "a")], hub, LEVELS)


@pytest.mark.parametrize(
    ("wanted", "topic", "fits"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),  # the examples of MQTT 5, 4.7.1
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "sport/tennis", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
    ],
)
def test_filters_match_as_the_mqtt_standard_defines(wanted, topic, fits):
    assert matches(wanted, topic) is fits


@given(st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from(["sensors-0", "#1", "#2"]))))
def test_times_are_kept_and_each_origin_has_one_publisher(captured) -> None:
    messages = sorted(Captured(START_NS + at, origin) for at, origin in captured)
    if not messages:
        return
    script, _ = script_from_capture(messages, LAB, LEVELS)
    first = messages[0].at_ns
    assert [one.at_ns for one in script.publications] == [one.at_ns - first for one in messages]
    publishers_of: dict[str, set[str]] = {}
    for one, publication in zip(messages, script.publications, strict=True):
        publishers_of.setdefault(one.origin, set()).add(publication.node)
    assert all(len(nodes) == 1 for nodes in publishers_of.values())
