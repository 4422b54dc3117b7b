"""A hazard of a file becomes publications: the same by the same seed, within the scenario, on subscribed topics."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.scenario import Publication, compile_timeline
from testbed.topology import TopologyErrors, find_likely_mistakes, load, load_text

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
FILE = GOLDEN / "topology" / "expanded" / "hazard.yaml"
TIMELINE = GOLDEN / "hazards" / "timeline.txt"

RAIN_FILE = """
nodes: {hub: {kind: broker}, s: {kind: sensor}, siren: {kind: subscriber, topics: [readings, alerts]}}
scenario:
  duration: 1h
  hazard: {kind: flood, nodes: s, rain: {file: rain.csv}, alerts: {topic: alerts}}
"""


def written(sent: Publication) -> str:
    return f"{sent.at_ns:>12,} {sent.node} {sent.topic} level {sent.priority} {sent.size} B"


def test_a_small_storm_becomes_this_timeline() -> None:
    """After an intended change, run it once with UPDATE_GOLDEN=1 and read the difference."""
    text = "".join(f"{written(sent)}\n" for sent in compile_timeline(load(FILE)))
    if os.environ.get("UPDATE_GOLDEN"):
        TIMELINE.write_text(text)
    assert text == TIMELINE.read_text()


def test_every_topic_of_a_hazard_counts_as_published() -> None:
    topology = load(FILE)
    assert find_likely_mistakes(topology) == ()
    topics = {event.topic for event in topology.scenario.publish_events}
    assert topics == {"readings", "alerts/west", "alerts/{node}"}
    levels = {
        event.priority for event in topology.scenario.publish_events if "alerts" in event.topic
    }
    assert levels == {1, 2, 3, 4, 5}
    unsubscribed = load_text(FILE.read_text().replace("[alerts/west, ", "["), "x")
    assert find_likely_mistakes(unsubscribed) == (
        "no node subscribes to 'alerts/west', which slopes-0 and 2 others publish; "
        "did you mean 'alerts/lone'?",
    )


def test_the_seed_decides_and_speed_only_divides() -> None:
    topology = load(FILE)
    assert compile_timeline(topology) == compile_timeline(load(FILE))
    assert compile_timeline(topology) != compile_timeline(replace(topology, seed=4))
    slow = replace(topology, scenario=replace(topology.scenario, speed=1.0))
    pairs = zip(compile_timeline(topology), compile_timeline(slow), strict=True)
    assert all(fast.at_ns == sent.at_ns // 20 for fast, sent in pairs)
    assert all(sent.at_ns < 90e9 for sent in compile_timeline(topology))


def test_another_slope_far_away_changes_nothing_for_the_others() -> None:
    text = (
        FILE.read_text()
        .replace("count: 3", "count: 4")
        .replace("133.50]]}", "133.50], [35.0, 135.0]]}")
    )
    more = [sent for sent in compile_timeline(load_text(text, "x")) if sent.node != "slopes-3"]
    assert more == list(compile_timeline(load(FILE)))


def test_rain_may_come_from_a_file_of_numbers(tmp_path: Path) -> None:
    (tmp_path / "rain.csv").write_text("seconds,mm_per_h\n0,10\n600,80.5\n1200,0\n")
    hazard = load_text(RAIN_FILE, "x", folder=tmp_path).scenario.hazard
    assert hazard is not None
    assert hazard.rain is not None
    assert hazard.rain.series == ((0, 10), (600, 80.5), (1200, 0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a file of at most"),
        ("", "does not begin with the columns seconds and mm_per_h"),
        ("seconds,mm_per_h\n", "does not begin with the columns seconds and mm_per_h"),
        ("seconds,mm_per_h\n0,1\n0,2\n", "line 3: 0 s is not after 0 s"),
        ("seconds,mm_per_h\n0,wet\n", "line 2: two numbers are expected here"),
        ("seconds,mm_per_h\n0,1,2\n", "line 2: two numbers are expected here"),
        ("seconds,mm_per_h\n0,-1\n", "line 2: out of range"),
        ("seconds,mm_per_h\n0,nan\n", "line 2: out of range"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "rain.csv").write_text(content)
    with pytest.raises(TopologyErrors, match=rf"(?s)x:5:.*{message}.*hint: the first line is"):
        load_text(RAIN_FILE, "x", folder=tmp_path)
