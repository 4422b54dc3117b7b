"""How much disk a run will take, from its topology alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.recording.disk_estimate import (
    MARGIN,
    DiskEstimate,
    estimate_disk,
    mean_of,
    on_the_wire,
)
from testbed.topology import load
from testbed.topology.model import Capture, Topology

ROOT = Path(__file__).resolve().parents[4]
LAB = """
name: valley
nodes:
  broker: {{kind: broker, link: lan}}
  sensor: {{kind: sensor, link: {link}}}
  siren: {{kind: subscriber, link: lan, topics: [alerts]}}
scenario:
  duration: {duration}s
  settle: 5s
  events:
    - at: 0s
      {event}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    def made(
        *,
        size: int = 1_000,
        count: int = 100,
        link: str = "lan",
        duration: int = 200,
        event: str | None = None,
    ) -> Topology:
        path = tmp_path / "valley.yaml"
        publish = (
            "publish: {from: sensor, topic: alerts, priority: 1, "
            f"size: {size}B, period: 1s, count: {count}}}"
        )
        path.write_text(LAB.format(link=link, duration=duration, event=event or publish))
        return load(path)

    return made


@pytest.mark.parametrize(
    ("name", "captured"),
    # Bytes of captures of real runs (docs/howto/runs.md).
    [
        ("minimal", 17_500),
        ("demo", 1_856_000),
        ("valley-alerts", 1_016_000),
        ("hillside", 6_376_000),
        ("kochi-areas", 9_067_000),
        ("lte-m-cameras", 13_078_000),
        ("moving-areas", 36_470_000),
        ("valleys-300", 11_000_000),
        ("kochi-landslide", 79_000_000),
        ("papers/lee2016", 12_488_000),
        ("papers/kita2025-a-live", 36_802_000),
        ("papers/banno2013-live", 79_683_000),
        ("papers/kawakami2016-live", 39_514_000),
    ],
)
def test_the_estimate_of_captures_is_near_to_those_of_real_runs(name, captured):
    found = estimate_disk(load(ROOT / "topologies" / f"{name}.yaml")).captures
    assert captured / MARGIN < found < captured * MARGIN


def test_each_publication_is_counted_on_every_link_of_its_path(lab):
    more = estimate_disk(lab(count=101)).captures - estimate_disk(lab(count=100)).captures
    links = 4  # the sensor's, the broker's in, the broker's out, the siren's
    assert more == pytest.approx(links * on_the_wire(1_000), rel=0.1)


def test_what_passes_a_router_is_counted_on_its_link_too(tmp_path):
    def captures(router: str) -> int:
        path = tmp_path / "valley.yaml"
        nodes = LAB.replace("link: {link}", "link: lan" + router)
        routers = "\n  village: {{kind: router, link: lan}}" if router else ""
        event = "publish: {from: sensor, topic: alerts, priority: 1, size: 1kB, period: 1s}"
        text = nodes.replace("\nscenario", f"{routers}\nscenario", 1)
        path.write_text(text.format(duration=100, event=event))
        return estimate_disk(load(path)).captures

    assert captures(", router: village") > 1.2 * captures("")


def test_no_link_carries_more_than_its_rate(lab):
    narrow = estimate_disk(lab(size=1_000_000, count=200, link="mvno-128k"))
    wide = estimate_disk(lab(size=1_000_000, count=200, link="lan"))
    assert narrow.captures < wide.captures
    assert wide.captures - narrow.captures > 200_000_000 - 205 * 2 * 128_000 / 8 * 1.1


def test_background_traffic_is_counted(lab):
    load_event = "load: {nodes: sensor, to: siren, rate: 800kbit/s}\n      for: 100s"
    found = estimate_disk(lab(event=load_event)).captures
    assert found == pytest.approx(2 * 10_000_000, rel=0.1)  # on both links


def test_publications_that_wait_for_a_trigger_are_counted(lab):
    publish = (
        "publish: {from: sensor, topic: alerts, priority: 1, size: 1kB, count: 100, period: 1s}"
    )
    at_once = estimate_disk(lab(event=publish)).captures
    waiting = lab(event=publish)
    events = tuple(replace(event, when=_trigger()) for event in waiting.scenario.publish)
    topology = replace(waiting, scenario=replace(waiting.scenario, publish=events))
    assert estimate_disk(topology).captures == at_once


def _trigger() -> Any:
    from testbed.topology.model import Trigger, TriggerKind

    return Trigger(TriggerKind.RECEIVED)


def test_without_captures_there_are_only_logs_and_results(lab):
    topology = replace(lab(), capture=Capture(enabled=False))
    assert estimate_disk(topology).captures == 0
    assert estimate_disk(topology).logs > 0


def test_a_short_snap_length_makes_small_captures(lab):
    whole, cut = lab(size=100_000), replace(lab(size=100_000), capture=Capture(snaplen=96))
    assert estimate_disk(cut).captures < estimate_disk(whole).captures / 5


def test_a_simulated_run_has_traces_that_are_smaller_than_captures(lab):
    assert estimate_disk(lab(), simulated=True).captures < estimate_disk(lab()).captures / 2


@given(size=st.integers(1, 100_000), count=st.integers(1, 50), seconds=st.integers(60, 600))
def test_more_or_larger_publications_and_more_time_never_take_less(
    tmp_path_factory, size, count, seconds
):
    path = tmp_path_factory.mktemp("lab") / "valley.yaml"

    def total(size: int, count: int, seconds: int) -> int:
        event = (
            f"publish: {{from: sensor, topic: alerts, priority: 1, size: {size}B, "
            f"period: 1s, count: {count}}}"
        )
        path.write_text(LAB.format(link="lan", duration=seconds, event=event))
        return estimate_disk(load(path)).total

    base = total(size, count, seconds)
    assert base <= total(size + 1_000, count, seconds)
    assert base <= total(size, count + 1, seconds)
    assert base <= total(size, count, seconds + 60)


def test_estimates_are_multiplied_and_averaged():
    one, other = DiskEstimate(100, 10, 1), DiskEstimate(300, 30, 3)
    assert one.total == 111
    assert one.times(3) == DiskEstimate(300, 30, 3)
    assert mean_of([one, other]) == DiskEstimate(200, 20, 2)
