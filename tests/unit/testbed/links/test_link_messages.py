"""The bytes that links are made of, read back by a library that knows netlink independently (pyroute2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink import rtnl
from pyroute2.netlink.rtnl.fibmsg import fibmsg
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import NUD_PERMANENT, ndmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from testbed.links import requests
from testbed.links.netlink import Request

names = st.from_regex(r"[a-z][a-z0-9]{0,13}", fullmatch=True)
macs = st.binary(min_size=6, max_size=6).map(lambda b: ":".join(f"{x:02x}" for x in b))
addresses = st.ip_addresses(v=4).map(str)
sizes = st.integers(68, 65535)


def read(request: Request, as_kind: type) -> Any:
    data = request.encoded(sequence=7)
    message = as_kind(data)
    message.decode()
    assert message["header"]["length"] == len(data)
    assert len(data) % 4 == 0
    assert message["header"]["sequence_number"] == 7
    assert message["header"]["flags"] & 0x5 == 0x5  # a request, to be acknowledged
    return message


@given(names, macs, names, macs, sizes, st.integers(3, 10**6))
def test_a_veth_pair_is_created_with_all_settings_in_one_message(
    name: str, mac: str, peer: str, peer_mac: str, mtu: int, ns: int
) -> None:
    message = read(requests.add_veth(name, mac, peer, ns, peer_mac, mtu), ifinfmsg)
    assert message["header"]["type"] == rtnl.RTM_NEWLINK
    assert message.get_attr("IFLA_IFNAME") == name
    assert message.get_attr("IFLA_ADDRESS") == mac
    assert message.get_attr("IFLA_MTU") == mtu
    info = message.get_attr("IFLA_LINKINFO")
    assert info.get_attr("IFLA_INFO_KIND") == "veth"
    other = info.get_attr("IFLA_INFO_DATA").get_attr("VETH_INFO_PEER")
    assert other.get_attr("IFLA_IFNAME") == peer
    assert other.get_attr("IFLA_ADDRESS") == peer_mac
    assert other.get_attr("IFLA_MTU") == mtu
    assert other.get_attr("IFLA_NET_NS_FD") == ns


@given(names, st.from_regex(r"[ -~]{0,400}", fullmatch=True), sizes, macs)
def test_an_interface_carries_its_owner_as_alias(name: str, alias: str, mtu: int, mac: str) -> None:
    message = read(requests.describe(name, alias, mtu, mac, forwards=True), ifinfmsg)
    assert message["header"]["type"] == rtnl.RTM_SETLINK
    assert message.get_attr("IFLA_IFNAME") == name
    assert message.get_attr("IFLA_MTU") == mtu
    assert message.get_attr("IFLA_ADDRESS") == mac
    assert message.get_attr("IFLA_IFALIAS") == alias[:255]
    assert message.get_attr("IFLA_GSO_MAX_SEGS") == 1  # the shaper sees frame by frame


@pytest.mark.parametrize("make", [requests.raise_link, requests.delete_link])
def test_an_interface_is_named(make: Any) -> None:
    message = read(make("l7"), ifinfmsg)
    assert message.get_attr("IFLA_IFNAME") == "l7"
    raised = make is requests.raise_link
    assert message["header"]["type"] == (rtnl.RTM_SETLINK if raised else rtnl.RTM_DELLINK)
    assert (message["flags"], message["change"]) == ((1, 1) if raised else (0, 0))


@given(st.integers(1, 2**31 - 1), addresses)
def test_an_address_has_no_network_around_it(index: int, address: str) -> None:
    message = read(requests.add_address(index, "eth0", address), ifaddrmsg)
    assert message["header"]["type"] == rtnl.RTM_NEWADDR
    assert (message["index"], message["prefixlen"], message["scope"]) == (index, 32, 0)
    assert message.get_attr("IFA_LOCAL") == message.get_attr("IFA_ADDRESS") == address


@given(st.integers(1, 2**31 - 1), addresses, macs)
def test_a_neighbour_is_known_for_ever(index: int, address: str, mac: str) -> None:
    message = read(requests.add_neighbour(index, address, mac), ndmsg)
    assert message["header"]["type"] == rtnl.RTM_NEWNEIGH
    assert (message["ifindex"], message["state"]) == (index, NUD_PERMANENT)
    assert message.get_attr("NDA_DST") == address
    assert message.get_attr("NDA_LLADDR") == mac


@given(st.integers(1, 2**31 - 1), addresses)
def test_a_route_to_a_neighbour_has_no_gateway(index: int, address: str) -> None:
    message = read(requests.route_to_neighbour(index, address), rtmsg)
    assert message["header"]["type"] == rtnl.RTM_NEWROUTE
    assert (message["dst_len"], message["table"], message["type"]) == (32, 254, 1)
    assert message["scope"] == 253
    assert message.get_attr("RTA_DST") == address
    assert message.get_attr("RTA_OIF") == index
    assert message.get_attr("RTA_GATEWAY") is None


@given(st.integers(1, 2**31 - 1), addresses, st.integers(8, 32), addresses)
def test_a_route_through_a_gateway_needs_no_network_to_reach_it(
    index: int, network: str, prefix_length: int, gateway: str
) -> None:
    message = read(requests.route_through(index, network, prefix_length, gateway), rtmsg)
    assert message["header"]["type"] == rtnl.RTM_NEWROUTE
    assert (message["dst_len"], message["scope"], message["type"]) == (prefix_length, 0, 1)
    assert message["flags"] == 4  # onlink
    assert message.get_attr("RTA_DST") == network
    assert message.get_attr("RTA_GATEWAY") == gateway
    assert message.get_attr("RTA_OIF") == index
    assert message.get_attr("RTA_METRICS") is None


@pytest.mark.parametrize("tcp", ["cubic", "bbr", "reno"])
def test_a_route_names_the_congestion_control_of_its_connections(tcp: str) -> None:
    request = requests.route_through(7, "10.77.0.0", 16, "10.77.255.254", tcp=tcp)
    metrics = read(request, rtmsg).get_attr("RTA_METRICS")
    assert metrics.get_attr("RTAX_CC_ALGO") == tcp


@given(addresses, st.integers(256, 2**32 - 1))
def test_packets_from_an_address_are_looked_up_in_a_table_of_black_holes(
    address: str, table: int
) -> None:
    for make, kind in (
        (requests.add_rule, rtnl.RTM_NEWRULE),
        (requests.delete_rule, rtnl.RTM_DELRULE),
    ):
        rule = read(make(address, table), fibmsg)
        assert (rule["header"]["type"], rule["src_len"], rule["action"]) == (kind, 32, 1)
        assert rule.get_attr("FRA_SRC") == address
        assert rule.get_attr("FRA_TABLE") == table
        assert rule.get_attr("FRA_PRIORITY") < 32766  # the main table's
    for make, kind in (
        (requests.add_blackhole, rtnl.RTM_NEWROUTE),
        (requests.delete_blackhole, rtnl.RTM_DELROUTE),
    ):
        hole = read(make(address, table), rtmsg)
        assert (hole["header"]["type"], hole["dst_len"], hole["type"]) == (kind, 32, 6)
        assert hole.get_attr("RTA_DST") == address
        assert hole.get_attr("RTA_TABLE") == table
