"""The `tc` commands for a links.json, argument by argument, and the numbers in them."""

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.board.links import LinkDirection, Links, parse_links
from nodes.board.plan import Kernel, lacking, plan, queue_bytes, tbf_burst
from testbed.links import model
from testbed.topology.model import Shape

OLD = Kernel(netem=False, bpf=False)
SMALL = Kernel(netem=False, bpf=True)
FULL = Kernel(netem=True, bpf=False)
BOTH = Kernel(netem=True, bpf=True)
PEERS = ["192.0.2.11", "10.77.0.0/16"]
TO_PEERS = (
    "11,32 0 0 4293918736,84 0 0 4294901760,21 1 0 172818432,5 0 0 1,5 0 0 5,"
    "32 0 0 4293918736,21 1 0 3221225995,5 0 0 1,5 0 0 1,6 0 0 0,6 0 0 4294967295"
)
OF_PEERS = TO_PEERS.replace("4293918736", "4293918732")
PRIO = "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
OUTER = [
    "tc qdisc replace dev eth0 root handle 7bed: htb direct_qlen 1000",
    "tc class replace dev eth0 parent 7bed: classid 7bed:1 htb rate 100gbit "
    "burst 1000000 cburst 1000000 quantum 20000",
]


def commands(kernel: Kernel, **link_settings: dict[str, Any]) -> list[str]:
    links = parse_links({"interface": "eth0", "peers": PEERS, **link_settings})
    return [" ".join(command) for command in plan(links, "tb0", 1500, kernel).commands()]


def test_rates_with_token_buckets_and_programs() -> None:
    assert commands(SMALL, up={"rate_bps": 80e3}, down={"rate_bps": 1e6, "queue_bytes": 9000}) == [
        *OUTER,
        "tc qdisc replace dev eth0 parent 7bed:1 handle 7be2: tbf rate 80000bit burst 1600 limit 24224",
        "tc qdisc replace dev tb0 root handle 7be2: tbf rate 1000000bit burst 1600 limit 9000",
        "tc qdisc replace dev eth0 ingress",
        f"tc filter add dev eth0 parent 7bed: protocol ip pref 1 bpf bytecode {TO_PEERS} flowid 7bed:1",
        f"tc filter add dev eth0 parent ffff: protocol ip pref 1 bpf bytecode {OF_PEERS} flowid :1 "
        "action mirred egress redirect dev tb0",
    ]


def test_everything_with_netem_and_u32() -> None:
    up = {"rate_bps": 80e3, "delay_s": 0.06, "jitter_s": 0.015, "loss": 0.005}
    assert commands(FULL, up=up, down={"delay_s": 0.06}) == [
        *OUTER,
        f"tc qdisc replace dev eth0 parent 7bed:1 handle 7be0: {PRIO}",
        "tc qdisc replace dev eth0 parent 7be0:1 handle 7be1: netem limit 100000 rate 80000bit "
        "delay 60000.000us 15000.000us loss random 0.5000000%",
        f"tc qdisc replace dev tb0 root handle 7be0: {PRIO}",
        "tc qdisc replace dev tb0 parent 7be0:1 handle 7be1: netem limit 100000 "
        "rate 100000000000bit delay 60000.000us",
        "tc qdisc replace dev eth0 ingress",
        "tc filter add dev eth0 parent 7be0: protocol ip pref 1 u32 match u32 0 0 flowid 7be0:1 "
        "action police rate 80000bit burst 25738 mtu 65535 conform-exceed drop/pass",
        "tc filter add dev tb0 parent 7be0: protocol ip pref 1 u32 match u32 0 0 flowid 7be0:1 "
        "action police rate 100000000000bit burst 4294967295 mtu 65535 conform-exceed drop/pass",
        "tc filter add dev eth0 parent 7bed: protocol ip pref 1 u32 match ip dst 10.77.0.0/16 flowid 7bed:1",
        "tc filter add dev eth0 parent 7bed: protocol ip pref 1 u32 match ip dst 192.0.2.11/32 flowid 7bed:1",
        "tc filter add dev eth0 parent ffff: protocol ip pref 1 u32 match ip src 10.77.0.0/16 flowid :1 "
        "action mirred egress redirect dev tb0",
        "tc filter add dev eth0 parent ffff: protocol ip pref 1 u32 match ip src 192.0.2.11/32 flowid :1 "
        "action mirred egress redirect dev tb0",
    ]


def test_a_cut_needs_no_shaper() -> None:
    assert commands(OLD, up={"cut": True, "delay_s": 0.1}) == [
        *OUTER,
        "tc qdisc replace dev eth0 parent 7bed:1 handle 7be3: blackhole",
        "tc filter add dev eth0 parent 7bed: protocol ip pref 1 u32 match ip dst 10.77.0.0/16 flowid 7bed:1",
        "tc filter add dev eth0 parent 7bed: protocol ip pref 1 u32 match ip dst 192.0.2.11/32 flowid 7bed:1",
    ]


def test_no_settings_give_no_commands() -> None:
    assert commands(BOTH) == []
    assert parse_links({"interface": "eth0", "peers": PEERS}).open
    assert parse_links({"interface": "eth0", "peers": [], "up": {"rate_bps": 1e6}}).open


def test_each_filter_of_many_peers_has_its_own_preference() -> None:
    peers = tuple(IPv4Network((0x0A000001 + 2 * number, 32)) for number in range(1200))
    filters = plan(
        Links("eth0", peers, LinkDirection(1e6), LinkDirection()), "tb0", 1500, SMALL
    ).peers
    assert [one.preference for one in filters] == [1, 2, 3]


def test_delay_without_netem_is_refused_and_named() -> None:
    links = parse_links({"interface": "eth0", "peers": PEERS, "down": {"delay_s": 0.1}})
    assert "`down` asks for delay, jitter or loss, and this kernel has no netem" in lacking(
        links, SMALL
    )
    assert lacking(links, FULL) == ""
    cut = parse_links({"interface": "eth0", "peers": PEERS, "down": {"delay_s": 0.1, "cut": True}})
    assert lacking(cut, SMALL) == ""


def test_the_digest_follows_the_values_and_that_of_peers_only_them() -> None:
    def planned(rate: float, peer: str) -> tuple[str, str]:
        links = Links("eth0", (IPv4Network(peer),), LinkDirection(rate), LinkDirection())
        made = plan(links, "tb0", 1500, SMALL)
        return made.digest, made.peers_digest

    first, faster, others = planned(1e6, PEERS[0]), planned(2e6, PEERS[0]), planned(1e6, PEERS[1])
    assert first == planned(1e6, PEERS[0])
    assert len({first[0], faster[0], others[0]}) == 3
    assert first[1] == faster[1] != others[1]


@given(
    st.floats(1, 1e10),
    st.integers(576, 9000),
    st.one_of(st.none(), st.integers(1, 10**8)),
    st.one_of(st.none(), st.integers(1, 10**6)),
)
def test_queues_and_bursts_are_those_of_the_labs_own_links(
    rate: float, mtu: int, queue: int | None, burst: int | None
) -> None:
    link = LinkDirection(rate_bps=rate, queue_bytes=queue, burst_bytes=burst)
    assert queue_bytes(link, mtu) == model.queue_bytes(Shape(rate_bps=rate, queue_bytes=queue), mtu)
    assert tbf_burst(rate, mtu, burst) == model.tbf_burst(rate, mtu, burst)


@pytest.mark.parametrize("rate", [0.5, 100.0, 56e3, 100e6])
def test_a_bucket_holds_a_whole_frame_at_any_rate(rate: float) -> None:
    (command,) = [one for one in commands(SMALL, up={"rate_bps": rate}) if "tbf" in one]
    arguments = command.split()
    assert int(arguments[arguments.index("burst") + 1]) >= 1600
    assert int(arguments[arguments.index("limit") + 1]) >= int(
        arguments[arguments.index("burst") + 1]
    )
