"""Links as wholes: made, configured, shaped, raised and removed in batches, for the keeper that lives in the core.

The core is a router: it holds one route a node and the gateway's address, and nothing else. A node sends to the gateway
whatever is for the lab. Both ends know each other's MAC address from the start, so no ARP requests are sent.
A link behind a router ends in that router's namespace, which passes on whatever is for others through its own link.
That link may end in another router: the core and each router on the path know through which of their links a node is
reached.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from testbed.errors import TestbedError
from testbed.links import netlink_messages as m
from testbed.links import requests
from testbed.links.changes import DirectionState
from testbed.links.model import direction_random
from testbed.links.namespaces import inside
from testbed.links.netlink import Netlink, Request, netlink
from testbed.links.shaping import shapers
from testbed.links.spec import GATEWAY_MAC, Attachment, LinkSpec, by_far_end
from testbed.topology.model import Emulator

# Whether interfaces can carry packets now: they are up, and so are their peers.


_GETLINK = 18
_HEADER = struct.Struct("=4xiII")  # struct ifinfomsg: index, flags
_ATTRIBUTE = struct.Struct("=HH")
_IFLA_OPERSTATE, _IFLA_EXT_MASK = 16, 29
_SKIP_STATISTICS = 1 << 3
_UNKNOWN, _UP = 0, 6


def running(kernel: Netlink) -> set[int]:
    """Numbers of the interfaces whose operational state is up."""
    question = m.about_link() + m.u32(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return {
        index for index, state in map(_state, kernel.ask_all(_GETLINK, question)) if state == _UP
    }


def _state(answer: bytes) -> tuple[int, int]:
    index = _HEADER.unpack_from(answer)[0]
    for kind, place, _ in attributes(answer, _HEADER.size):
        if kind == _IFLA_OPERSTATE:
            return index, answer[place]
    return index, _UNKNOWN


def attributes(data: bytes, place: int) -> Iterator[tuple[int, int, int]]:
    """Kind, begin and end of each attribute's value."""
    while place + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        yield kind & 0x3FFF, place + _ATTRIBUTE.size, place + length
        place += max((length + 3) & ~3, _ATTRIBUTE.size)


# Offloads off: otherwise a 60 KiB super-packet passes a shaper as one packet, and checksums in captures are wrong.


_SIOCETHTOOL = 0x8946
_SWITCHES = (
    0x00000017,  # ETHTOOL_STXCSUM; without it the kernel gives up scatter-gather, TSO and GSO as well
    0x0000001F,  # ETHTOOL_STSO
    0x00000024,  # ETHTOOL_SGSO
    0x0000002C,  # ETHTOOL_SGRO
)


def switch_off(ifname: str) -> None:
    """Switch off all offloads of an interface of the current namespace; an unsupported offload is no error."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for switch in _SWITCHES:
            value = ctypes.create_string_buffer(struct.pack("=II", switch, 0), 8)
            request = struct.pack("16sQ16x", ifname.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(sock, _SIOCETHTOOL, request)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise


NODE_IF = "eth0"
_LOOPBACK = "lo"
_RUNNING_S = 10.0  # the kernel reports the carrier some time after both ends are up
_PAUSE_S = 0.002


def make_core() -> None:
    """Prepare the core before it has links."""
    with netlink() as core:
        core.do([requests.raise_link(_LOOPBACK)])


def make_veths(links: Sequence[Attachment]) -> None:
    """Make veth links: eth0 in the node's namespace, the other end in the core or the router, both down."""
    for far_fd, ending_there in by_far_end(links):
        with _at(far_fd) as far:
            far.do([_veth(link) for link in ending_there])


def _veth(link: Attachment) -> Request:
    spec = link.spec
    return requests.add_veth(spec.far_if, GATEWAY_MAC, NODE_IF, link.ns_fd, spec.mac, spec.mtu)


def configure(links: Sequence[Attachment]) -> None:
    """Set addresses and aliases, and switch offloads off. The links stay down."""
    with _at(None) as core:
        core.do(_gateway_addresses(links))
    for far_fd, ending_there in by_far_end(links):
        with _at(far_fd) as far:
            far.do([request for link in ending_there for request in _describe_far_end(link.spec)])
            for link in ending_there:
                switch_off(link.spec.far_if)
    for link in links:
        with _at(link.ns_fd) as node:
            switch_off(NODE_IF)
            node.do(_describe_node_end(link))
    for above_fd, passing in _passing(links):
        if above_fd is not None:
            with _at(above_fd) as router:
                router.do([requests.refuse_otherwise(link.spec.address) for link, _ in passing])


def _passing(
    links: Sequence[Attachment],
) -> Iterator[tuple[int | None, list[tuple[Attachment, LinkSpec]]]]:
    """The core and the routers that packets for these links pass before the router where they end: nearer to the core
    first, each with these links and the router's link through which it passes their packets on."""
    found: dict[int | None, list[tuple[Attachment, LinkSpec]]] = {}
    depth: dict[int | None, int] = {}
    for link in links:
        for router in link.routers:
            found.setdefault(router.far_fd, []).append((link, router.spec))
            depth[router.far_fd] = len(router.routers)
    for above_fd in sorted(found, key=lambda fd: depth[fd]):
        yield above_fd, found[above_fd]


def _gateway_addresses(links: Sequence[Attachment]) -> list[Request]:
    """The address of the core's ICMP answers: packet too large, or no such node."""
    loopback = socket.if_nametoindex(_LOOPBACK)
    found = {link.spec.gateway for link in links}
    return [requests.add_address(loopback, _LOOPBACK, gateway) for gateway in sorted(found)]


def _describe_far_end(spec: LinkSpec) -> list[Request]:
    wanted = [requests.describe(spec.far_if, spec.alias, spec.mtu, GATEWAY_MAC, forwards=True)]
    if spec.behind is not None:
        wanted.append(requests.refuse_otherwise(spec.address))
    return wanted


def _describe_node_end(link: Attachment) -> list[Request]:
    spec = link.spec
    index = socket.if_nametoindex(NODE_IF)
    return [
        requests.raise_link(_LOOPBACK),
        requests.describe(NODE_IF, spec.alias, spec.mtu, spec.mac, forwards=link.is_router),
        requests.add_address(index, NODE_IF, spec.address),
    ]


def shape(
    emulator: Emulator,
    states: Sequence[tuple[Attachment, DirectionState, DirectionState]],
    seed: int | None,
) -> None:
    """Shape both directions in the kernel: `up` where the node sends, `down` where the core or the router does."""

    def wanted(spec: LinkSpec, ifname: str, state: DirectionState, label: str) -> list[Request]:
        chance = direction_random(seed, spec.node, label).getrandbits(64)
        index = socket.if_nametoindex(ifname)
        return shapers(emulator, index, ifname, state, spec.mtu, chance)

    downs = {link.spec.node: down for link, _, down in states}
    for link, up, _ in states:
        with _at(link.ns_fd) as node:
            node.do(wanted(link.spec, NODE_IF, up, "up"))
    for far_fd, ending_there in by_far_end([link for link, _, _ in states]):
        specs = [link.spec for link in ending_there]
        with _at(far_fd) as far:
            all_wanted = (wanted(s, s.far_if, downs[s.node], "down") for s in specs)
            far.do(list(chain.from_iterable(all_wanted)))


def raise_links(emulator: Emulator | None, links: Sequence[Attachment]) -> None:
    """Raise both ends and add their routes, nearer to the core first: from now on packets flow."""
    for far_fd, ending_there in by_far_end(links):
        for above_fd, passing in _passing(ending_there):
            with _at(above_fd) as above:
                above.do([_route_through_router(link.spec, router) for link, router in passing])
        _raise_at(far_fd, emulator, ending_there)


def _raise_at(far_fd: int | None, emulator: Emulator | None, links: Sequence[Attachment]) -> None:
    with _at(far_fd) as far:
        far.do([request for link in links for request in _open_far_end(link.spec)])
        for link in links:
            with _at(link.ns_fd) as node:
                node.do(_open_node_end(link.spec))
        if emulator is not Emulator.RELAY:  # a tap has no carrier
            _wait_for_carrier(far, [link.spec.far_if for link in links])


def _open_far_end(spec: LinkSpec) -> list[Request]:
    index = socket.if_nametoindex(spec.far_if)
    return [
        requests.raise_link(spec.far_if),
        requests.add_neighbour(index, spec.address, spec.mac),
        requests.route_to_neighbour(index, spec.address),
    ]


def _route_through_router(spec: LinkSpec, router: LinkSpec) -> Request:
    """The route to a node behind a router, in the core or in the router where that router's link ends."""
    index = socket.if_nametoindex(router.far_if)
    return requests.route_through(index, spec.address, 32, router.address)


def _open_node_end(spec: LinkSpec) -> list[Request]:
    index = socket.if_nametoindex(NODE_IF)
    network, length = ("0.0.0.0", 0) if spec.beyond else (spec.network, spec.prefix_length)
    return [
        requests.raise_link(NODE_IF),
        requests.add_neighbour(index, spec.gateway, GATEWAY_MAC),
        requests.route_through(index, network, length, spec.gateway, tcp=spec.tcp),
    ]


def _wait_for_carrier(kernel: Netlink, ifnames: Sequence[str]) -> None:
    """Wait until the kernel has noticed that the other ends are up: before, it silently drops what is sent there.

    It does so in its own time, some milliseconds later; one first packet in ten was lost without this.
    """
    deadline = time.monotonic() + _RUNNING_S
    waiting = {socket.if_nametoindex(ifname): ifname for ifname in ifnames}
    while missing := waiting.keys() - running(kernel):
        if time.monotonic() > deadline:
            raise TestbedError(
                f"the interface {waiting[min(missing)]} did not come up within {_RUNNING_S:.0f} s",
                "if the machine is very busy, try again when it is less so",
            )
        time.sleep(_PAUSE_S)


def remove(links: Sequence[Attachment]) -> None:
    """Remove routes and both ends; a missing one is no error."""
    for above_fd, passing in _passing(links):
        with _at(above_fd) as above:
            routes = 1 if above_fd is None else 2  # a router also has the unreachable route
            above.do([requests.delete_route(link.spec.address) for link, _ in passing] * routes)
    for far_fd, ending_there in by_far_end(links):
        with _at(far_fd) as far:
            far.do([request for link in ending_there for request in _close_far_end(link.spec)])
    for link in links:
        with _at(link.ns_fd) as node:
            node.do([requests.delete_link(NODE_IF)])


def _close_far_end(spec: LinkSpec) -> list[Request]:
    closing = [requests.delete_link(spec.far_if)]
    if spec.behind is not None:
        closing.append(requests.delete_route(spec.address))  # the unreachable route
    return closing


def interfaces(ns_fd: int | None = None) -> frozenset[str]:
    """Names of the interfaces in a namespace; None: the current one.

    Read from /proc, in a tenth of the time that netlink takes for thousands of interfaces.
    """
    if ns_fd is not None:
        with inside(ns_fd):
            return interfaces()
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
    return frozenset(line.split(":")[0].strip() for line in lines)


def ns_path(ns_fd: int | None) -> str:
    """A path by which this process's children can open a namespace that this process holds; None: its own."""
    return f"/proc/{os.getpid()}/" + ("ns/net" if ns_fd is None else f"fd/{ns_fd}")


@contextmanager
def _at(ns_fd: int | None) -> Iterator[Netlink]:
    """A netlink socket inside a namespace; None: in the core, which this process is in."""
    if ns_fd is None:
        with netlink() as kernel:
            yield kernel
    else:
        with inside(ns_fd), netlink() as kernel:
            yield kernel
