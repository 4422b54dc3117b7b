"""The benchmark of brokers: its traffic, its protocols, and its evaluation of the arrivals."""

import json
import math
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.brokers import added, alerts_table, compared, forwarding_table
from benchmarks.support.brokers import our_protocol
from benchmarks.support.brokers.forwarding import Forwarded
from benchmarks.support.brokers.mqtt_protocol import PUBLISH, Packets, packet
from benchmarks.support.brokers.mqtt_valley import MqttValley
from benchmarks.support.brokers.our_valley import HALLS, SITES, OurValley
from benchmarks.support.brokers.overlay_labs import expected, overlay_text, standing
from benchmarks.support.brokers.scene import (
    OFFICES,
    PHOTOGRAPH_BYTES,
    PHOTOGRAPHS_AT,
    SLOPES,
    SLOW_LINK,
    Reception,
    reception,
    timelines,
)
from benchmarks.support.brokers.valley import Contestant
from benchmarks.support.delivery.traffic import Due
from benchmarks.support.harness import json_row
from nodes.overlay import BETWEEN_BROKERS
from support.overlays.overlay_network import (
    OverlayNetwork,
    actual_links,
    expected_links,
    graph_node,
)
from testbed.topology.loader import load_text
from testbed.topology.profiles import PROFILES

SECOND = 1_000_000_000


# Protocols of the brokers


@given(st.lists(st.binary(max_size=300)), st.integers(1, 40))
def test_frames_of_a_broker_are_found_however_they_are_cut(
    messages: list[bytes], length: int
) -> None:
    frames = our_protocol.Frames()
    # As a broker sends them: without a mask, whose four zeros and bit are taken out here.
    stream = b"".join(_unmasked(our_protocol.frame(message), len(message)) for message in messages)
    pieces = [stream[at : at + length] for at in range(0, len(stream), length)]
    assert [whole for piece in pieces for whole in frames.whole(piece)] == messages


def _unmasked(framed: bytes, size: int) -> bytes:
    head = framed[: -size - 4] if size else framed[:-4]
    return bytes([head[0], head[1] & 0x7F]) + head[2:] + framed[len(framed) - size :]


def test_a_long_frame_has_a_long_length() -> None:
    long = bytes(70_000)
    assert our_protocol.Frames().whole(_unmasked(our_protocol.frame(long), len(long))) == [long]


@given(st.lists(st.binary(max_size=300)), st.integers(1, 40))
def test_packets_of_mosquitto_are_found_however_they_are_cut(
    bodies: list[bytes], length: int
) -> None:
    packets = Packets()
    stream = b"".join(packet(PUBLISH, body) for body in bodies)
    pieces = [stream[at : at + length] for at in range(0, len(stream), length)]
    found = [whole for piece in pieces for whole in packets.whole(piece)]
    assert found == [(PUBLISH, body) for body in bodies]


# The graph


def _grown(brokers: int, keys: int, seed: int) -> OverlayNetwork:
    network, chances = OverlayNetwork(seed), Random(seed)
    for number in range(1, brokers + 1):
        node = graph_node(network, number, [1])
        for key in {chances.randbytes(2) for _ in range(keys)}:
            network.act(number, node.insert(key, network.now))
        network.run(1.0)
    network.run(60.0)
    return network


@pytest.mark.parametrize(("brokers", "keys"), [(1, 3), (2, 1), (9, 1), (7, 3)])
def test_the_links_of_converged_brokers_are_those_of_their_sorted_keys(
    brokers: int, keys: int
) -> None:
    network = _grown(brokers, keys, seed=brokers)
    graphs = [node.describe() for node in network.nodes.values()]
    assert actual_links(network.nodes.values()) == expected_links(network.nodes.values())
    assert expected(graphs) == {
        key.hex(): [tuple(side and side.hex() for side in both) for both in levels]
        for key, levels in expected_links(network.nodes.values()).items()
    }
    found = standing(graphs)
    assert found.exact
    assert found.keys == sum(len(graph["peers"]) for graph in graphs)


def test_one_wrong_link_is_noticed() -> None:
    graphs = [node.describe() for node in _grown(6, 1, seed=3).nodes.values()]
    linked = next(peer for graph in graphs for peer in graph["peers"] if peer["links"][0][0])
    linked["links"][0][0] = "00"
    assert standing(graphs).wrong == 1
    assert not standing(graphs).exact


def test_a_key_that_has_not_settled_is_noticed() -> None:
    graphs = [node.describe() for node in _grown(4, 1, seed=4).nodes.values()]
    graphs[0]["peers"][0]["settled"] = False
    assert not standing(graphs).exact


def test_a_graph_without_peers_is_not_exact() -> None:
    assert not standing([{"vector": "00", "peers": []}]).exact


# Labs


@pytest.mark.parametrize("method", BETWEEN_BROKERS)
def test_each_broker_of_a_lab_has_a_subscriber_of_its_own(method: str) -> None:
    topology = load_text(overlay_text("idle", method, 50, 5, seed=1), "idle.yaml")
    offices = [node for node in topology.nodes if node.kind == "subscriber"]
    assert len({office.brokers[0] for office in offices}) == len(offices) == 50
    assert {len(office.topics) for office in offices} == {1, 2, 3, 4, 5}
    assert topology.overlay.method == method
    assert not topology.capture.enabled


# The valley


def test_slopes_send_more_photographs_than_their_links_carry() -> None:
    rate_bps = PROFILES[SLOW_LINK].up.rate_bps
    assert rate_bps is not None
    for sent in timelines(60, seed=1, backlog=True).values():
        photographs = sum(due.size for due in sent if not due.urgent)
        assert photographs / 60 > rate_bps / 8


def test_the_alerts_are_the_same_with_and_without_a_backlog() -> None:
    crowded, quiet = (timelines(60, seed=1, backlog=backlog) for backlog in (True, False))
    assert quiet.keys() == crowded.keys() == set(SLOPES)
    for slope in SLOPES:
        assert [due for due in crowded[slope] if due.urgent] == list(quiet[slope])
        assert 15 < len(quiet[slope]) < 45
    assert quiet[SLOPES[0]] != quiet[SLOPES[1]]


def test_delays_are_of_each_alert_at_each_office() -> None:
    alert, photograph = Due(2 * SECOND, True, 300), Due(0, False, PHOTOGRAPH_BYTES)
    sent = dict.fromkeys(SLOPES, (photograph, alert))
    start = 100 * SECOND
    arrivals = {
        (office, slope, 1): start + (3 + number) * SECOND
        for slope in SLOPES
        for number, office in enumerate(OFFICES)
    }
    arrivals[PHOTOGRAPHS_AT, SLOPES[0], 0] = start + 50 * SECOND
    found = reception("x", sent, start, arrivals)
    assert (found.due, found.arrived) == (len(SLOPES) * len(OFFICES),) * 2
    assert (found.p50_s, found.p99_s, found.largest_s) == (2.0, 3.0, 3.0)
    assert found.photographs == 1 / len(SLOPES)
    assert not found.complete


def test_an_alert_that_never_came_is_late_without_end() -> None:
    sent = {slope: (Due(0, True, 300),) for slope in SLOPES}
    found = reception("x", sent, 0, {(OFFICES[0], SLOPES[0], 0): SECOND})
    assert (found.arrived, found.largest_s) == (1, math.inf)
    assert json.loads(json.dumps(json_row(found), allow_nan=False))["largest_s"] is None
    assert alerts_table("title", [found]).row_count == 1
    assert not found.complete


CONTESTANTS: Sequence[Contestant] = [OurValley(HALLS), OurValley(SITES), MqttValley("mosquitto")]


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda one: one.name)
def test_every_client_is_behind_a_3g_link_of_its_own(contestant: Contestant) -> None:
    posts = {post.role: post for post in contestant.posts()}
    for client in (*SLOPES, *OFFICES):
        link = posts[posts[client].behind or client]
        assert link.profile == SLOW_LINK
        sharing = [post for post in posts.values() if link.role in (post.role, post.behind)]
        assert sum(post.role in (*SLOPES, *OFFICES) for post in sharing) == 1


# Ratios


def test_ours_is_compared_with_the_best_of_theirs() -> None:
    rows = {
        name: Reception(name, 1, 1, 0.1, p99_s, p99_s, math.nan)
        for name, p99_s in (("ours", 1.0), ("one", 8.0), ("two", 4.0))
    }
    assert compared(rows, "ours", ["one", "two"]) == 0.25
    assert rows["ours"].complete


def test_the_delay_that_a_broker_adds_excludes_that_of_the_direct_path() -> None:
    found = [Forwarded("x", 5_000, 4_000, delay) for delay in (0.0011, 0.0006)]
    assert added(found, direct_s=0.0001) == 0.5
    assert forwarding_table(found, 0.0001).row_count == 2
