"""Programs that choose peers' packets take exactly those, however many peers there are."""

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.board.bpf import ALL, IP_DESTINATION, IP_SOURCE, MOST_PEERS, Program, as_text, peers_only
from support.captures import classic_bpf

_MOST_INSTRUCTIONS = 4096  # BPF_MAXINSNS
_TC_CAPACITY = 16_384 - 1024  # bytes of a message

addresses = st.integers(0, 2**32 - 1).map(IPv4Address)
networks = st.builds(
    lambda address, length: IPv4Network((address, length), strict=False),
    addresses,
    st.one_of(st.just(32), st.integers(0, 32)),
)


def packet(source: IPv4Address, destination: IPv4Address) -> bytes:
    return b"\x45" + bytes(11) + source.packed + destination.packed + bytes(8)


def taken(programs: list[Program], data: bytes) -> bool:
    answers = [classic_bpf.run(program, data, network_header=0) for program in programs]
    assert set(answers) <= {0, 0xFFFFFFFF}
    return any(answers)


@given(st.lists(networks, max_size=12), addresses, addresses, st.data())
def test_a_packet_is_taken_if_its_address_is_in_a_network(
    peers: list[IPv4Network], source: IPv4Address, destination: IPv4Address, data: st.DataObject
) -> None:
    if peers and data.draw(st.booleans()):  # else hardly ever one is hit
        network = data.draw(st.sampled_from(peers))
        near = data.draw(st.integers(-1, 1)) + int(network.network_address)
        source = IPv4Address(near % 2**32)
    frame = packet(source, destination)
    for place, address in ((IP_SOURCE, source), (IP_DESTINATION, destination)):
        expected = any(address in network for network in peers)
        assert taken(peers_only(peers, place), frame) == expected


@pytest.mark.parametrize("count", [1, 50, 199, 200, 201, 500, 501, 1700])
def test_many_peers_that_cannot_be_joined(count: int) -> None:
    peers = [IPv4Network((0x0A000001 + 2 * number, 32)) for number in range(count)]
    programs = peers_only(peers, IP_SOURCE)
    assert len(programs) == -(-count // MOST_PEERS)
    for program in programs:
        assert len(program) <= _MOST_INSTRUCTIONS
        assert len(program) * 8 < _TC_CAPACITY
    no_peer = IPv4Address("192.0.2.1")
    for peer in peers:
        address = peer.network_address
        assert taken(programs, packet(address, no_peer))
        assert not taken(programs, packet(address + 1, no_peer))
        assert not taken(programs, packet(no_peer, address))


def test_neighbours_are_joined() -> None:
    peers = [IPv4Network((0x0A000000 + number, 32)) for number in range(256)]
    assert peers_only(peers, IP_SOURCE) == peers_only([IPv4Network("10.0.0.0/24")], IP_SOURCE)


def test_no_peers_match_no_packets() -> None:
    assert peers_only([], IP_SOURCE) == []


def test_text_as_tc_takes_it() -> None:
    assert as_text(ALL) == "1,6 0 0 4294967295"
    (program,) = peers_only([IPv4Network("192.0.2.11")], IP_DESTINATION)
    assert as_text(program) == (
        "6,32 0 0 4293918736,21 1 0 3221225995,5 0 0 1,5 0 0 1,6 0 0 0,6 0 0 4294967295"
    )
