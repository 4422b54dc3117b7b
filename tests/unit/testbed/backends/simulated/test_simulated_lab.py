"""A topology in virtual time: delays and bytes follow from arithmetic, and are the same each time."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.metrics.link_utilization import UTILIZATION as ANALYSED_UTILIZATION
from analysis.protocols.link import TOTALS
from analysis.protocols.messages import SIGHTING
from nodes.overlay.base import Refuse
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.play import PlayResult, play
from testbed.backends.simulated.trace import LINK_UTILIZATION, LINKS, MESSAGES, write_trace
from testbed.links.changes import Action, LinkOrder, LinkState, apply_order, configured_links
from testbed.places import RunPlace
from testbed.scenario import compile_timeline
from testbed.topology import load
from testbed.topology.model import Topology

FILE = """
name: small
seed: 7
links:
  profiles:
    narrow: {both: {rate: 80kbit/s, delay: 50ms}}
    shaky: {both: {rate: 80kbit/s, delay: 50ms, jitter: 20ms, loss: 2%}}
defaults: {link: narrow}
nodes:
  broker: {kind: broker, link: lan}
  gauge: {kind: sensor}
  office: {kind: subscriber, topics: [alerts, photos]}
  siren: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 20s
  events:
    - at: 1s
      publish: {from: gauge, topic: alerts, priority: 5, size: 1000B, period: 2s, count: 3}
    - at: 10s
      publish: {from: gauge, topic: photos, size: 20kB}
    - at: 10500ms
      publish: {from: gauge, topic: alerts, priority: 5, size: 200B}
"""


Reading = Callable[..., Topology]


@pytest.fixture
def topology_of(tmp_path: Path) -> Reading:
    def read(text: str, **changes: Any) -> Topology:
        file = tmp_path / "small.yaml"
        file.write_text(text)
        return replace(load(file), **changes)

    return read


def run(topology: Topology, service_ns: int = 0) -> tuple[SimulatedLab, PlayResult]:
    lab = SimulatedLab(topology, RunPlace(Path("small-run")), service_ns)
    return lab, play(lab, lambda seconds: None)


def sightings(lab: SimulatedLab, folder: Path) -> list[dict[str, Any]]:
    write_trace(lab, folder)
    rows: list[dict[str, Any]] = pq.read_table(folder / "messages.parquet").to_pylist()
    return rows


def delays(rows: list[dict[str, Any]], receiver: str) -> list[float]:
    return [
        (row["last_ns"] - row["published_ns"]) / SECOND
        for row in rows
        if row["link"] == receiver and row["dst"] == receiver and row["kind"] == "PUBLISH"
    ]


def events(lab: SimulatedLab, node: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lab.nodes[node].log.lines]


def test_the_tables_are_those_of_the_analysis() -> None:
    assert list(MESSAGES) == list(SIGHTING)
    assert list(LINKS) == list(TOTALS)
    assert list(LINK_UTILIZATION) == list(ANALYSED_UTILIZATION)


def test_a_lone_message_takes_the_time_of_its_bytes_on_each_link(
    topology_of: Reading, tmp_path: Path
) -> None:
    lab, played = run(topology_of(FILE), service_ns=SECOND // 1000)
    assert (played.expected, played.received, played.settled) == (9, 9, True)
    rows = sightings(lab, tmp_path / "trace")
    # 28 bytes of header, the topic, the payload; the frame's head and a mask on the way to the broker; 66 around it
    up, down = 28 + 6 + 1000 + 4 + 4 + 66, 28 + 6 + 1000 + 4 + 66
    lan = (up + down) * 8 / 100e6
    expected = (up + down) / 10_000 + 2 * 0.050 + lan + 2 * 0.001  # two processors
    assert delays(rows, "siren")[:3] == pytest.approx([expected] * 3, abs=1e-6)
    assert [row["hops"] for row in rows if row["link"] == "siren" and row["hops"] == 2]


def test_poisson_arrivals_are_published_at_their_times(
    topology_of: Reading, tmp_path: Path
) -> None:
    text = FILE.replace("period: 2s, count: 3", "rate: 30/min, arrivals: poisson")
    assert text != FILE
    topology = topology_of(text)
    planned = [one.at_ns for one in compile_timeline(topology)]
    lab, played = run(topology)
    assert played.received == played.expected > 9
    rows = sightings(lab, tmp_path / "trace")
    published = sorted({row["published_ns"] for row in rows if row["kind"] == "PUBLISH"})
    assert [at_ns - published[0] for at_ns in published] == [at - planned[0] for at in planned]


@pytest.mark.parametrize(
    "delivery",
    [
        {"method": "fifo"},
        {"method": "pq-pc"},
        {"method": "pq-pc", "ack": "udp"},
        {"method": "dmpq-pc"},
        {"method": "dmpq-pc", "label": "opcode", "ack": "udp", "dv": 500},
        {"method": "preemptive"},
    ],
    ids=str,
)
def test_every_delivery_method_brings_everything_and_all_bytes_are_accounted_for(
    topology_of: Reading, tmp_path: Path, delivery: dict[str, Any]
) -> None:
    lab, played = run(topology_of(f"{FILE}\ndelivery: {json.dumps(delivery)}\n"))
    assert played.received == played.expected == 9
    rows = sightings(lab, tmp_path / "trace")
    assert all(row["complete"] for row in rows)
    links = pq.read_table(tmp_path / "trace" / "links.parquet").to_pylist()
    layers = ("ethernet", "ip", "tcp", "retransmitted", "websocket", "label", "header", "payload")
    for link in links:
        layered = sum(link[f"{name}_bytes"] for name in (*layers, "control", "udp_acks"))
        assert layered == link["wire_bytes"], link["link"]
        assert link["unread_bytes"] == link["missing_bytes"] == 0
    by_link = {(row["link"], row["direction"]): row for row in links}
    assert by_link["gauge", "up"]["payload_bytes"] == 3 * 1000 + 20_000 + 200
    used = pq.read_table(tmp_path / "trace" / "link_utilization.parquet").to_pylist()
    for (name, direction), link in by_link.items():
        mine = [row for row in used if (row["link"], row["direction"]) == (name, direction)]
        assert sum(row["bytes"] for row in mine) == link["wire_bytes"]
        assert sum(row["packets"] for row in mine) == link["packets"]
    assert by_link["office", "down"]["publish_messages"] == 5
    assert (by_link["office", "up"]["udp_ack_packets"] > 0) == (delivery.get("ack") == "udp")


def test_preemptive_delivery_sends_urgent_messages_first_in_virtual_time(
    topology_of: Reading, tmp_path: Path
) -> None:
    late = {}
    for method in ("fifo", "preemptive"):
        lab, _ = run(topology_of(f"{FILE}\ndelivery: {{method: {method}}}\n"))
        rows = sightings(lab, tmp_path / method)
        late[method] = delays(rows, "siren")[-1]
    # Under fifo the alert waits for the rest of the photograph, 1.5 s; preemptive lets it pass between pieces.
    assert late["fifo"] > 1.5
    assert late["preemptive"] < 0.5


def test_the_same_seed_gives_the_same_trace_and_another_seed_another_trace(
    topology_of: Reading, tmp_path: Path
) -> None:
    shaky = FILE.replace("link: narrow", "link: shaky")

    def trace(name: str, seed: int) -> list[bytes]:
        lab, _ = run(topology_of(shaky, seed=seed))
        write_trace(lab, tmp_path / name)
        return [
            (tmp_path / name / f"{table}.parquet").read_bytes() for table in ("messages", "links")
        ]

    first = trace("first", 7)
    assert trace("again", 7) == first
    assert trace("other", 8)[0] != first[0]


def test_losses_and_jitter_delay_messages_but_lose_none(
    topology_of: Reading, tmp_path: Path
) -> None:
    lossy = FILE.replace("loss: 2%", "loss: 20%").replace("link: narrow", "link: shaky")
    lab, played = run(topology_of(lossy))
    assert played.received == played.expected
    rows = sightings(lab, tmp_path / "trace")
    assert max(delays(rows, "siren")) > 0.4
    links = pq.read_table(tmp_path / "trace" / "links.parquet").to_pylist()
    assert sum(link["retransmitted_packets"] for link in links) > 0


def test_nodes_behind_one_router_share_its_link(topology_of: Reading, tmp_path: Path) -> None:
    text = """
name: shared
links: {profiles: {narrow: {both: {rate: 80kbit/s, delay: 50ms}}}}
groups:
  sensors: {kind: sensor, count: 2, router: village}
nodes:
  broker: {kind: broker}
  village: {kind: router, link: narrow}
  hut: {kind: subscriber, topics: [a], router: village}
  office: {kind: subscriber, topics: [a]}
scenario:
  duration: 2s
  events:
    - {at: 1s, publish: {from: "sensors[*]", topic: a, size: 1000B}}
"""
    lab, played = run(topology_of(text))
    assert played.received == 4
    rows = sightings(lab, tmp_path / "trace")
    one = (28 + 1 + 1000 + 8 + 66) / 10_000
    first, second = sorted(delays(rows, "office"))
    assert first == pytest.approx(one + 0.05, abs=0.001)
    assert second == pytest.approx(2 * one + 0.05, abs=0.001)
    directions = {(row["link"], row["direction"]) for row in rows if row["kind"] == "PUBLISH"}
    assert ("village", "up") in directions
    assert ("village", "down") in directions  # from the broker back to the hut


CHAIN = """
name: chain
links: {profiles: {narrow: {both: {rate: 80kbit/s, delay: 50ms}}, wide: {both: {delay: 200ms}, mtu: 600}}}
nodes:
  broker: {kind: broker}
  gauge: {kind: sensor, router: village}
  village: {kind: router, router: valley, link: narrow}
  valley: {kind: router, link: wide}
  hut: {kind: subscriber, topics: [a], router: village}
  farm: {kind: subscriber, topics: [a], router: valley}
  office: {kind: subscriber, topics: [a]}
scenario:
  duration: 2s
  events:
    - {at: 1s, publish: {from: gauge, topic: a, size: 200B}}
"""


@pytest.mark.parametrize(
    ("near", "far", "route", "core"),
    [
        ("gauge", "office", "gauge>up village>up valley>up office>down", 3),
        ("office", "gauge", "office>up valley>down village>down gauge>down", 1),
        ("gauge", "hut", "gauge>up hut>down", -1),
        ("gauge", "farm", "gauge>up village>up farm>down", -1),
        ("farm", "gauge", "farm>up village>down gauge>down", -1),
    ],
)
def test_packets_cross_the_links_of_all_routers_below_the_one_where_both_ends_meet(
    topology_of: Reading, near: str, far: str, route: str, core: int
) -> None:
    topology = topology_of(CHAIN)
    lab = SimulatedLab(topology, RunPlace(Path("chain-run")), 0)
    flow = lab._flow(topology.node(near), topology.node(far))
    names = {direction: f"{link}>{way}" for (link, way), direction in lab.directions.items()}
    assert " ".join(names[direction] for direction in flow.route) == route
    assert flow.core == core


def test_a_message_takes_the_time_of_every_router_on_its_path(
    topology_of: Reading, tmp_path: Path
) -> None:
    lab, played = run(topology_of(CHAIN))
    assert played.received == 3
    rows = sightings(lab, tmp_path / "trace")
    # 28 bytes of header, the topic, the payload; the frame's head and a mask; 66 around it
    up, down = 28 + 1 + 200 + 4 + 4 + 66, 28 + 1 + 200 + 4 + 66
    to_broker = up / 10_000 + 0.05 + 0.2
    assert delays(rows, "office") == pytest.approx([to_broker], abs=0.001)
    assert delays(rows, "farm") == pytest.approx([to_broker + 0.2], abs=0.001)
    ack = 66 / 10_000  # the broker's acknowledgement to the gauge crosses the village's link first
    to_hut = to_broker + 0.2 + ack + down / 10_000 + 0.05
    assert delays(rows, "hut") == pytest.approx([to_hut], abs=0.001)


def test_a_cut_of_an_outer_router_cuts_everything_behind_it_off(topology_of: Reading) -> None:
    text = CHAIN.replace("duration: 2s", "duration: 30s")
    cut = "    - {at: 500ms, for: 10s, cut: {nodes: valley}}\n"
    lab, played = run(topology_of(text + cut))
    assert played.received == played.expected == 3
    times = [
        line["t"] - EPOCH_NS - played.start
        for name in ("office", "farm", "hut")
        for line in events(lab, name)
        if line["event"] == "receive"
    ]
    assert len(times) == 3
    assert min(times) > 10.5 * SECOND


def test_a_cut_link_delays_publications_until_it_is_restored(
    topology_of: Reading, tmp_path: Path
) -> None:
    topology = topology_of(FILE)
    lab = SimulatedLab(topology, RunPlace(Path("small-run")), 0)
    configured = configured_links(topology)

    def order(action: Action) -> Callable[[Any], None]:
        def change(_: Any) -> None:
            now: dict[str, LinkState] = apply_order(LinkOrder(action), links, configured, "relay")
            links.update(now)
            lab.change_links(now)

        return change

    links = {"siren": configured["siren"]}
    lab.loop.at(4 * SECOND, order(Action.CUT))  # the scenario begins at 2 s
    lab.loop.at(9 * SECOND, order(Action.RESTORE))
    played = play(lab, lambda seconds: None)
    assert played.received == played.expected
    rows = sightings(lab, tmp_path / "trace")
    first, second, third, _ = delays(rows, "siren")
    assert first < 0.4
    assert second > 3.5  # published at 3 s of the scenario, restored at 7 s
    assert third > 1.5
    assert max(delays(rows, "office")[:3]) < 0.4


def test_a_subscriber_cut_off_for_minutes_reconnects_and_gets_the_next_message(
    topology_of: Reading,
) -> None:
    text = FILE.replace("duration: 20s", "duration: 10min").replace("at: 10500ms", "at: 9min")
    topology = topology_of(text)
    lab = SimulatedLab(topology, RunPlace(Path("small-run")), 0)
    configured = configured_links(topology)["siren"]
    cut = LinkState(replace(configured.up, cut=True), replace(configured.down, cut=True))
    lab.loop.at(4 * SECOND, lambda _: lab.change_links({"siren": cut}))
    lab.loop.at(400 * SECOND, lambda _: lab.change_links({"siren": configured}))
    played = play(lab, lambda seconds: None)
    assert played.expected - played.received == 2  # the broker's queue went with the link
    logged = [event["event"] for event in events(lab, "broker") if event.get("peer") == "siren"]
    assert logged == ["connect", "disconnect", "connect"]


def test_a_node_that_cannot_connect_is_named(topology_of: Reading) -> None:
    from testbed.errors import NodeFailure

    hopeless = FILE.replace("loss: 2%", "loss: 100%").replace(
        "siren: {kind: subscriber", "siren: {kind: subscriber, link: shaky"
    )
    with pytest.raises(NodeFailure, match="not connected after 60 s of virtual time: siren"):
        run(topology_of(hopeless))


def test_logs_have_the_events_and_fields_of_real_nodes(topology_of: Reading) -> None:
    lab, _ = run(topology_of(FILE))
    logged = events(lab, "siren")
    assert [event["event"] for event in logged] == [
        "start",
        "connect",
        "ready",
        *["receive"] * 4,
        "stop",
    ]
    assert set(logged[3]) == {
        *("t", "node", "event", "id", "topic", "priority", "size", "hops"),
        *("published_ns", "origin"),
    }
    assert logged[-1]["received"] == 4
    published = [event for event in events(lab, "gauge") if event["event"] == "publish"]
    assert [event["late_ns"] for event in published] == [0] * 5
    assert len({event["id"] for event in published}) == 5


def test_a_full_queue_drops_messages_and_logs_it(topology_of: Reading) -> None:
    text = f"{FILE}\ndelivery: {{method: fifo, limit_bytes: 20100}}\ntcp: bbr\n".replace(
        "size: 20kB}", "size: 20kB, period: 100ms, count: 8}"
    )
    lab, played = run(topology_of(text))
    dropped = [event for event in events(lab, "gauge") if event["event"] == "drop"]
    assert dropped
    assert "bytes do not fit" in dropped[0]["reason"]
    assert played.received == played.expected - sum(
        2 if d["topic"] == "alerts" else 1 for d in dropped
    )


def test_a_refused_peer_is_disconnected_and_reconnects(topology_of: Reading) -> None:
    topology = topology_of(FILE)
    lab = SimulatedLab(topology, RunPlace(Path("small-run")), 0)
    refusal = [Refuse("siren", "it broke the rules")]
    lab.loop.at(6 * SECOND, lambda _: lab.nodes["broker"].perform(refusal))
    played = play(lab, lambda seconds: None)
    assert played.received == played.expected  # it was back before the next alert
    logged = [
        (e["event"], e.get("reason")) for e in events(lab, "broker") if e.get("peer") == "siren"
    ]
    assert logged == [
        ("connect", None),
        ("refuse", "it broke the rules"),
        ("disconnect", "it broke the rules"),
        ("connect", None),
    ]
    at_siren = [event["event"] for event in events(lab, "siren")]
    assert at_siren.count("connect") == at_siren.count("ready") == 2
    assert at_siren.count("disconnect") == 1
