"""One lab, the same messages, a narrow link for each method and direction: how long does an urgent message wait?

A tenth of Lee's experiment in time: 70 kB/s instead of 7, and a message of 300 kB that occupies the link for 4 s.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.delivery.preemptive import PIECE_S as PREEMPTIVE_PIECE_S
from support.lines import records
from support.runs.busy_machine import latest_wakeup_s

pytestmark = pytest.mark.netns

Command = Callable[..., Any]

RATE = 70_000  # bytes a second
STANDARD, URGENT = 300_000, 1_000
OVERHEAD_BYTES = 66 + 4 + 1 + 34  # Ethernet to TCP, WebSocket, label, our own header with the topic
DELAY_S = 0.005
# The longest piece that a method is sending when the urgent message arrives.
PIECE_S = {"dmpq-pc": 1514 / RATE, "preemptive": PREEMPTIVE_PIECE_S}
BUSY_S = 0.15  # tests share the machine
WAKEUPS = 5  # that a message needs: of the sensor, the relay, the broker, the relay again, and the subscriber

FILE = f"""
name: urgent
links:
  profiles:
    narrow: {{both: {{rate: {RATE // 1000}kB/s, delay: 5ms, queue: 400kB}}}}
nodes:
  broker: {{kind: broker}}
  slope: {{kind: sensor}}
  fifo: {{kind: subscriber, link: narrow, topics: [alerts]}}
  pq-pc: {{kind: subscriber, link: narrow, topics: [alerts], delivery: {{method: pq-pc}}}}
  dmpq-pc: {{kind: subscriber, link: narrow, topics: [alerts], delivery: {{method: dmpq-pc}}}}
  preemptive: {{kind: subscriber, link: narrow, topics: [alerts], delivery: {{method: preemptive}}}}
  up-fifo: {{kind: sensor, link: narrow}}
  up-dmpq-pc: {{kind: sensor, link: narrow, delivery: {{method: dmpq-pc}}}}
  up-preemptive: {{kind: sensor, link: narrow, delivery: {{method: preemptive}}}}
  office: {{kind: subscriber, topics: [reports]}}
scenario:
  duration: 3s
  settle: 20s
  events:
    - at: 0s
      publish: {{from: slope, topic: alerts, priority: 1, size: {STANDARD}B}}
    - at: 300ms
      publish: {{from: slope, topic: alerts, priority: 5, size: {URGENT}B, period: 500ms, count: 4}}
    - at: 0s
      publish: {{from: [up-fifo, up-dmpq-pc, up-preemptive], topic: reports, size: {STANDARD}B}}
    - at: 550ms
      publish:
        from: [up-fifo, up-dmpq-pc, up-preemptive]
        topic: reports
        priority: 5
        size: {URGENT}B
        period: 500ms
        count: 4
"""


@pytest.fixture
def run(places: Path, testbed_json: Command) -> Iterator[Path]:
    file = places / "urgent.yaml"
    file.write_text(FILE)
    testbed_json("up", file, "--backend", "netns")
    played = testbed_json("play", "urgent")
    yield places / "c" / played["run"]
    testbed_json("down", "urgent")


def events(run: Path, node: str, event: str) -> list[dict[str, Any]]:
    lines = records(run / "logs" / f"{node}.jsonl")
    return [line for line in lines if line["event"] == event]


def delays(run: Path, node: str, level: int) -> list[float]:
    """Delays of the messages that this node received, or that it sent up to the office."""
    if node.startswith("up-"):
        sent = {line["id"] for line in events(run, node, "publish")}
        received = [line for line in events(run, "office", "receive") if line["id"] in sent]
    else:
        received = events(run, node, "receive")
    return [
        (line["t"] - line["published_ns"]) / 1e9 for line in received if line["priority"] == level
    ]


def longest_wait(run: Path, node: str) -> float:
    """The longest delay of urgent messages; the standard message must not have left the link idle for long."""
    urgent, (standard,) = delays(run, node, 5), delays(run, node, 1)
    assert len(urgent) == 4
    assert STANDARD / RATE < standard < 1.6 * STANDARD / RATE + WAKEUPS * latest_wakeup_s(run)
    return max(urgent)


def test_an_urgent_message_passes_a_divided_one_within_its_bound_and_waits_for_a_whole_one(
    run: Path,
) -> None:
    machine_s = WAKEUPS * latest_wakeup_s(run)  # it may have delayed any message for so long
    for direction in ("", "up-"):
        fifo = longest_wait(run, f"{direction}fifo")
        for method, piece_s in PIECE_S.items():
            bound_s = piece_s + (URGENT + OVERHEAD_BYTES) / RATE + DELAY_S
            waited = longest_wait(run, f"{direction}{method}")
            assert waited < 1.15 * bound_s + BUSY_S + machine_s
            assert fifo > 10 * (waited - machine_s)
    assert longest_wait(run, "pq-pc") > 0.5 * STANDARD / RATE  # it waits for the message being sent
