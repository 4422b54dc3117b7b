"""The parts of a message's delay: from hand-made captures, and from the simulator, which knows the truth."""

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure
from nodes.protocol import wire
from support.runs.metric_tables import rows
from support.runs.star_runs import (
    MS,
    START_NS,
    Captures,
    Connection,
    Host,
    Passing,
    frame,
    manifest_of,
)
from testbed.backends.simulated.link_layer import Kind
from testbed.backends.simulated.link_layer import LinkDirection as SimulatedLink
from testbed.lab.simulate import simulate
from testbed.topology import load

pytestmark = pytest.mark.spark

BROKER = Host("broker", 1, "10.77.0.1")
GAUGE, SIREN = Host("gauge", 2, "10.77.0.2"), Host("siren", 3, "10.77.0.3")
RATE_BPS = 80_000.0
BYTE_NS = round(8e9 / RATE_BPS)
HEADER_BYTES = 54  # the headers of a made-up packet
PARTS = ("queue_s", "transmission_s", "propagation_s", "retransmission_s")


class HandMade:
    """A gauge on a narrow link sends alerts to a siren, at the times and with the faults that the test chooses."""

    def __init__(self) -> None:
        self.captures = Captures()
        self.logs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.up = self._connection(GAUGE, 40002)
        self.down = self._connection(SIREN, 40003)

    def _connection(self, host: Host, port: int) -> Connection:
        connection = Connection(self.captures, host, BROKER, ports=(port, 8765))
        connection.open(START_NS)
        return connection

    def message(self, number: int, at_ms: int) -> tuple[wire.Message, int]:
        """An alert that the gauge publishes at this time of the run; return it with that time in ns."""
        at_ns = START_NS + (1_000 + at_ms) * MS
        message = wire.Message(
            wire.Kind.PUBLISH,
            priority=5,
            origin=GAUGE.number,
            message_id=wire.message_id(GAUGE.number, number),
            published_ns=at_ns,
            topic="alerts",
            payload=bytes(200),
        )
        about = {"id": f"{message.message_id:016x}", "topic": "alerts", "priority": 5, "size": 200}
        self.logs["gauge"].append({"t": at_ns, "node": "gauge", "event": "publish", **about})
        return message, at_ns

    def first_hop(self, message: wire.Message, ready_ns: int, fate: Passing | None = None) -> bytes:
        """Wait 2 ms in the gauge, take the time of the narrow link, and 5 ms on each of the two links."""
        data = frame(wire.encode(message), b"mask")
        self.up.decide = lambda *_: fate or Passing()
        self.up.send(GAUGE, data, ready_ns + 2 * MS + self.takes(data))
        return data

    def again(self, data: bytes, after: int, at_ns: int) -> None:
        """Send the data again; `after` bytes of the stream follow it. It has left the link at this time."""
        self.up.decide = lambda *_: Passing()
        self.up.resend(GAUGE, data, len(data) + after, at_ns)

    def second_hop(self, message: wire.Message, ready_ns: int) -> None:
        """Wait 1 ms in the broker."""
        self.down.send(BROKER, frame(wire.encode(message.forwarded())), ready_ns + 1 * MS)

    @staticmethod
    def takes(data: bytes) -> int:
        return (len(data) + HEADER_BYTES) * BYTE_NS

    def write(self, folder: Path) -> None:
        (folder / "pcap").mkdir(parents=True)
        (folder / "logs").mkdir()
        members = [(BROKER, "broker", ()), (GAUGE, "sensor", ()), (SIREN, "subscriber", ["alerts"])]
        document = manifest_of(members, folder.name)
        shape = {"rate_bps": None, "delay_s": 0.005, "jitter_s": 0.0, "loss": 0.0}
        narrow = {
            "name": "narrow",
            "up": {**shape, "rate_bps": RATE_BPS},
            "down": shape,
            "mtu": 1500,
        }
        document["topology"]["profiles"].append(narrow)
        document["topology"]["nodes"][1]["profile"] = "narrow"
        document["topology"]["deadlines"] = [[5, 0.2]]
        (folder / "run.json").write_text(json.dumps(document))
        for host, _, _ in members:
            (folder / "pcap" / f"{host.name}.pcap").write_bytes(self.captures.pcap(host.name))
            lines = "".join(json.dumps(line) + "\n" for line in self.logs[host.name])
            (folder / "logs" / f"{host.name}.jsonl").write_text(lines)


@pytest.fixture(scope="module")
def by_hand(spark, tmp_path_factory):
    """Six alerts with different fates.

    One has no fault, one is lost behind the gauge's link, one is lost on it with another behind it, one is repeated
    without need, and one is overtaken.
    """
    made = HandMade()
    hop = 10 * MS  # both links of a hop

    well, t = made.message(1, 0)
    data = made.first_hop(well, t)
    took = made.takes(data)
    made.second_hop(well, t + 2 * MS + took + hop)

    lost, t = made.message(2, 1_000)
    data = made.first_hop(lost, t, Passing(down=False))
    made.again(data, 0, t + 2 * MS + took + 200 * MS)
    made.second_hop(lost, t + 2 * MS + took + 200 * MS + hop)

    late, t = made.message(3, 2_000)
    data = made.first_hop(late, t, Passing(up=False))
    behind, u = made.message(4, 2_100)
    other = made.first_hop(behind, u)
    made.again(data, len(other), t + 2 * MS + took + 300 * MS)
    made.second_hop(late, t + 2 * MS + took + 300 * MS + hop)
    made.second_hop(behind, t + 2 * MS + took + 300 * MS + hop + 20_000)

    fine, t = made.message(5, 4_000)
    data = made.first_hop(fine, t)
    made.again(data, 0, t + 2 * MS + took + 250 * MS)
    made.second_hop(fine, t + 2 * MS + took + hop)

    folder = tmp_path_factory.mktemp("runs") / "by-hand"
    made.write(folder)
    summary = measure(spark.sparkContext, read_run(folder))
    return folder, took / 1e9, summary


def test_each_part_of_the_delay_of_a_hop_is_measured(by_hand):
    folder, took, _ = by_hand
    first = {
        int(row["id"], 16) & 0xFF: row for row in rows(folder, "hops") if row["src"] == "gauge"
    }
    lost_s = {1: 0.0, 2: 0.2, 3: 0.2, 4: 0.2, 5: 0.0}
    assert first.keys() == lost_s.keys()
    for number, row in first.items():
        assert row["propagation_s"] == pytest.approx(0.010)
        assert row["transmission_s"] == pytest.approx(took, rel=0.01), "headers are an average"
        assert row["retransmission_s"] == pytest.approx(lost_s[number]), number
    # A loss on the link itself shows when the next message arrives, 0.1 s later; nothing shows it before.
    waits = {number: row["queue_s"] for number, row in first.items()}
    assert waits == pytest.approx({1: 0.002, 2: 0.002, 3: 0.102, 4: 0.002, 5: 0.002}, abs=4e-4)
    second = [row for row in rows(folder, "hops") if row["dst"] == "siren"]
    assert [row["transmission_s"] for row in second] == [0.0] * 5, "these links have no limit"
    assert [row["queue_s"] for row in second] == pytest.approx([0.001] * 5, abs=3e-5)


def test_the_parts_of_a_delivery_are_those_of_its_hops_and_add_up_to_its_delay(by_hand):
    folder, _, summary = by_hand
    found = rows(folder, "deliveries")
    assert len(found) == 5
    for row in found:
        legs = [hop for hop in rows(folder, "hops") if hop["id"] == row["id"]]
        for part in PARTS:
            assert row[part] == pytest.approx(sum(leg[part] for leg in legs)), part
        assert math.isclose(sum(row[part] for part in PARTS), row["delay_s"], abs_tol=1e-9)
    parts = summary["delay_parts_s"]["5"]
    assert sum(parts.values()) == pytest.approx(sum(row["delay_s"] for row in found) / 5)
    assert parts["retransmission"] == pytest.approx(3 * 0.2 / 5)


def test_messages_that_arrive_after_their_deadline_are_late(by_hand):
    folder, _, summary = by_hand
    late = {int(row["id"], 16) & 0xFF for row in rows(folder, "deliveries") if row["late"]}
    assert late == {2, 3, 4}
    assert all(row["deadline_s"] == 0.2 for row in rows(folder, "deliveries"))
    level = summary["by_priority"]["5"]
    assert (level["late"], level["deadline_s"], level["out_of_order"]) == (3, 0.2, 0)


LOSSY = """
name: lossy
seed: 5
links:
  profiles:
    narrow: {both: {rate: 80kbit/s, delay: 50ms}}
    slow: {both: {rate: 56kbit/s, delay: 20ms}}
    slower: {both: {rate: 48kbit/s, delay: 70ms}}
    lossy: {up: {rate: 80kbit/s, delay: 50ms}, down: {rate: 40kbit/s, delay: 30ms, loss: 20%}}
nodes:
  broker: {kind: broker, link: lan}
  box: {kind: router, link: narrow}
  gauge: {kind: sensor, link: lan, router: box}
  siren: {kind: subscriber, link: lossy, topics: [alerts]}
scenario:
  duration: 130s
  events:
    - at: 1s
      publish: {from: gauge, topic: alerts, priority: 5, size: 200B, period: 3s}
"""


class Truth:
    """Records how the simulator's links treat each packet with bytes of a stream."""

    def __init__(self) -> None:
        self.sent: dict[tuple[Any, int], list[int]] = defaultdict(list)  # when each part was sent
        self.copy: dict[tuple[Any, int], Any] = {}  # the packet that brought it
        self.link_times: dict[Any, list[tuple[float, float]]] = defaultdict(list)  # of each packet
        self.sent_at: dict[Any, int] = {}

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        usual_send, usual_arrive = SimulatedLink.send, SimulatedLink._arrive

        def send(link: SimulatedLink, packet: Any) -> None:
            if packet.kind is Kind.DATA:
                if packet.place == 0:
                    self.sent[packet.flow, packet.start].append(link._loop.now)
                    self.sent_at[packet] = link._loop.now
                rate = link.model._rate
                took_s = packet.size * 8 / rate if rate else 0.0
                self.link_times[packet].append((took_s, link.model._delay / 1e9))
            usual_send(link, packet)

        def arrive(link: SimulatedLink, packet: Any) -> None:
            usual_arrive(link, packet)
            if packet.kind is Kind.DATA and packet.place == len(packet.flow.route):
                self.copy.setdefault((packet.flow, packet.start), packet)

        monkeypatch.setattr(SimulatedLink, "send", send)
        monkeypatch.setattr(SimulatedLink, "_arrive", arrive)

    def hops(self) -> dict[tuple[str, str], tuple[float, float, float]]:
        """(id, receiver) -> seconds lost by retransmissions, taken by the links for its bytes, travelled.

        Only of messages that had a packet to themselves.
        """
        found = {}
        for flow in {flow for flow, _ in self.sent}:
            for written in flow.ledger.messages:
                part = flow, written.runs[0].at
                packet = self.copy.get(part)
                alone = packet and part[1] + packet.length == written.runs[0].end
                if written.header.kind is wire.Kind.PUBLISH and alone:
                    took, travelled = (
                        sum(each) for each in zip(*self.link_times[packet], strict=True)
                    )
                    lost = (self.sent_at[packet] - self.sent[part][0]) / 1e9
                    identity = f"{written.header.message_id:016x}"
                    found[identity, flow.target] = (lost, took, travelled)
        return found


# The gauge is behind three routers. A broker at the core: all their links count. One behind the valley's router: only
# those below it. One beside the gauge: none.
CHAIN = """  box: {kind: router, link: narrow, router: village}
  village: {kind: router, link: slow, router: valley}
  valley: {kind: router, link: slower}
"""
AT_CORE = "  broker: {kind: broker, link: lan}"
PLACES = {
    "one router": LOSSY,
    "three routers": LOSSY.replace("  box: {kind: router, link: narrow}\n", CHAIN),
}
for above in ("valley", "box"):
    beside = AT_CORE.replace("}", f", router: {above}}}")
    PLACES[f"broker behind {above}"] = PLACES["three routers"].replace(AT_CORE, beside)


@pytest.mark.parametrize("place_of_routers", PLACES)
def test_on_lossy_links_the_measured_parts_are_those_of_the_simulator(
    spark, places, tmp_path, monkeypatch, place_of_routers
):
    file = tmp_path / "lossy.yaml"
    file.write_text(PLACES[place_of_routers])
    truth = Truth()
    truth.watch(monkeypatch)
    place = simulate(load(file), file, lambda _: None)
    measure(spark.sparkContext, read_run(place.folder))
    known = truth.hops()
    hops = [row for row in rows(place.folder, "hops") if (row["id"], row["dst"]) in known]
    assert len(hops) == len(known) > 80
    for row in hops:
        lost, took, travelled = known[row["id"], row["dst"]]
        assert row["propagation_s"] == pytest.approx(travelled)
        assert row["transmission_s"] == pytest.approx(took, rel=0.02), "headers are an average"
        assert row["retransmission_s"] == pytest.approx(lost, abs=0.001), row
        total_s = (row["received_last_ns"] - row["ready_ns"]) / 1e9
        assert sum(row[part] for part in PARTS) == pytest.approx(total_s)
        assert row["queue_s"] == pytest.approx(total_s - lost - took - travelled, abs=0.003)
    assert sum(lost > 0 for lost, _, _ in known.values()) > 4, "on the siren's link"
