"""BPF filters of the capture on a board: the kernel drops what they leave out. Pure.

All of them leave out the connections that control the lab (SSH). Where packets of peers are shaped on their way in, the
interface receives them before the shaper: its filter leaves them out, and the shaper's device captures them.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network

from nodes.board import bpf as b
from nodes.board.bpf import Program, Step

_ETHERNET = 14
_TYPE = 12  # place in an Ethernet header
_IPV4, _IPV6 = 0x0800, 0x86DD
_TCP = 6
_IPV4_PROTOCOL, _IPV4_FRAGMENT, _IPV6_NEXT = _ETHERNET + 9, _ETHERNET + 6, _ETHERNET + 6
_NOT_THE_FIRST = 0x1FFF  # bits of a fragment's place
_SHORTEST_IPV4 = 20
_IPV6_HEADER = 40
_PORTS = 4  # bytes
_OUTGOING = 4  # PACKET_OUTGOING
_NO_BORROW = 256  # more than the longest IPv4 header: keeps a difference above zero


def interface_filter(ports: Sequence[int], elsewhere: Iterable[IPv4Network] = ()) -> Program:
    """For an interface: all but these TCP ports, and but packets from networks that are captured elsewhere."""
    return b.assemble([*_not_from(list(elsewhere)), *_not_to(ports), *_end()])


def shaper_filter(ports: Sequence[int], peers: Iterable[IPv4Network]) -> Program:
    """For the shaper's device: what peers sent, but these ports. The kernel may send packets of its own there."""
    return b.assemble(
        [
            Step(b.LOAD_HALF, _TYPE),
            Step(b.IF_EQUAL, _IPV4, "is IPv4"),
            Step(b.RETURN, b.NOTHING),
            "is IPv4",
            *b.among(peers, _ETHERNET + b.IP_SOURCE, "of a peer"),
            Step(b.RETURN, b.NOTHING),
            "of a peer",
            *_not_to(ports),
            *_end(),
        ]
    )


def _end() -> Iterator[Step | str]:
    yield "keep"
    yield Step(b.RETURN, b.EVERYTHING)
    yield "leave out"
    yield Step(b.RETURN, b.NOTHING)


def _not_from(networks: list[IPv4Network]) -> Iterator[Step | str]:
    if not networks:
        return
    yield Step(b.LOAD_WORD, b.PACKET_TYPE)
    yield Step(b.IF_EQUAL, _OUTGOING, "goes out")
    yield Step(b.LOAD_HALF, _TYPE)
    yield Step(b.IF_EQUAL, _IPV4, "comes in")
    yield "goes out"
    yield Step(b.JUMP, then="ports")
    yield "comes in"
    yield from b.among(networks, _ETHERNET + b.IP_SOURCE, "leave out")
    yield "ports"


def _not_to(ports: Sequence[int]) -> Iterator[Step | str]:
    """A frame too short for what it claims to be is kept: to read behind its end would mean to drop it."""
    if not ports:
        return
    yield Step(b.LOAD_LENGTH)
    yield Step(b.IF_AT_LEAST, _ETHERNET + _SHORTEST_IPV4, "", "keep")
    yield Step(b.LOAD_HALF, _TYPE)
    yield Step(b.IF_EQUAL, _IPV6, "IPv6")
    yield Step(b.IF_EQUAL, _IPV4, "", "keep")
    yield Step(b.LOAD_BYTE, _IPV4_PROTOCOL)
    yield Step(b.IF_EQUAL, _TCP, "", "keep")
    yield Step(b.LOAD_HALF, _IPV4_FRAGMENT)
    yield Step(b.IF_ANY_BIT, _NOT_THE_FIRST, "keep")
    yield Step(b.X_IS_IP_HEADER_LENGTH, _ETHERNET)
    yield Step(b.LOAD_LENGTH)
    yield Step(b.ADD, _NO_BORROW)
    yield Step(b.MINUS_X)
    yield Step(b.IF_AT_LEAST, _NO_BORROW + _ETHERNET + _PORTS, "", "keep")
    for place in (_ETHERNET, _ETHERNET + 2):
        yield Step(b.LOAD_HALF_BEHIND_X, place)
        yield from (Step(b.IF_EQUAL, port, "leave out") for port in ports)
    yield Step(b.JUMP, then="keep")
    yield "IPv6"
    yield Step(b.LOAD_BYTE, _IPV6_NEXT)
    yield Step(b.IF_EQUAL, _TCP, "", "keep")
    yield Step(b.LOAD_LENGTH)
    yield Step(b.IF_AT_LEAST, _ETHERNET + _IPV6_HEADER + _PORTS, "", "keep")
    for place in (_ETHERNET + _IPV6_HEADER, _ETHERNET + _IPV6_HEADER + 2):
        yield Step(b.LOAD_HALF, place)
        yield from (Step(b.IF_EQUAL, port, "leave out") for port in ports)
