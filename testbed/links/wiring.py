"""Links as wholes: made, configured, shaped, raised and removed in batches, for the keeper that lives in the core."""

import errno
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.errors import TestbedError
from testbed.links import requests
from testbed.links.namespaces import inside
from testbed.links.netlink import NetlinkError, Request, netlink
from testbed.links.offload import switch_off
from testbed.links.seeds import direction_random
from testbed.links.shaping import shaper
from testbed.links.spec import LinkSpec
from testbed.topology.model import Emulator, Shape

BRIDGE = "core0"
BRIDGE_MAC = "02:74:62:00:00:00"  # as a node with the number 0, which there is not
NODE_IF = "eth0"
MOST_LINKS = 1023  # ports of a Linux bridge


@dataclass(frozen=True, slots=True)
class Access:
    """A link and the namespace of its node."""

    spec: LinkSpec
    ns_fd: int


def make_core() -> None:
    """The bridge of the current namespace."""
    with netlink() as core:
        core.do([requests.raise_link("lo"), requests.add_bridge(BRIDGE, BRIDGE_MAC)])


def make_veths(links: Sequence[Access]) -> None:
    """The kernel's own links: one end here, the other as eth0 in the node's namespace, both down."""
    with netlink() as core:
        core.do(
            [
                requests.add_veth(
                    link.spec.core_if, link.spec.mtu, NODE_IF, link.ns_fd, link.spec.mac
                )
                for link in links
            ]
        )


def configure(links: Sequence[Access]) -> None:
    """Addresses, aliases, bridge ports; offloads off. The links stay down."""
    bridge = socket.if_nametoindex(BRIDGE)
    wanted: list[Request] = []
    for spec in (link.spec for link in links):
        index = socket.if_nametoindex(spec.core_if)
        switch_off(spec.core_if)
        wanted += [
            requests.describe(index, spec.core_if, spec.alias, spec.mtu, master=bridge),
            requests.quiet_port(index, spec.core_if),
            requests.add_station(index, spec.core_if, spec.mac),
            requests.add_neighbour(bridge, spec.address, spec.mac),
        ]
    try:
        with netlink() as core:
            core.do(wanted)
    except NetlinkError as error:
        if error.number == errno.EXFULL:
            raise TestbedError(
                f"a bridge has at most {MOST_LINKS} ports", "use fewer nodes in one lab"
            ) from error
        raise
    for link in links:
        _configure_node_end(link)


def _configure_node_end(link: Access) -> None:
    spec = link.spec
    with inside(link.ns_fd), netlink() as node:
        index = socket.if_nametoindex(NODE_IF)
        switch_off(NODE_IF)
        node.do(
            [
                requests.raise_link("lo"),
                requests.describe(index, NODE_IF, spec.alias, spec.mtu, mac=spec.mac),
                requests.add_address(index, NODE_IF, spec.address, spec.prefix_length),
            ]
        )


def shape(emulator: Emulator, link: Access, up: Shape, down: Shape, seed: int | None) -> None:
    """Both directions by the kernel: `up` where the node sends, `down` where the core does."""
    spec = link.spec

    def request(ifname: str, shape: Shape, label: str) -> Request:
        chance = direction_random(seed, spec.node, label).getrandbits(64)
        index = socket.if_nametoindex(ifname)
        return shaper(emulator, index, ifname, shape, spec.mtu, chance)

    with inside(link.ns_fd), netlink() as node:
        node.do([request(NODE_IF, up, "up")])
    with netlink() as core:
        core.do([request(spec.core_if, down, "down")])


def raise_links(links: Sequence[Access]) -> None:
    """Both ends up: from now on packets flow."""
    with netlink() as core:
        core.do([requests.raise_link(link.spec.core_if) for link in links])
    for link in links:
        with netlink(link.ns_fd) as node:
            node.do([requests.raise_link(NODE_IF)])


def remove(links: Sequence[Access]) -> None:
    """Both ends; what is gone already is fine."""
    bridge = socket.if_nametoindex(BRIDGE)
    with netlink() as core:
        for spec in (link.spec for link in links):
            core.do(
                [
                    requests.delete_link(spec.core_if),
                    requests.delete_neighbour(bridge, spec.address),
                ]
            )
    for link in links:
        with netlink(link.ns_fd) as node:
            node.do([requests.delete_link(NODE_IF)])


def interfaces(ns_fd: int | None = None) -> Mapping[str, int]:
    """Names and numbers of the interfaces in a namespace; None: the current one."""
    if ns_fd is None:
        return {name: index for index, name in socket.if_nameindex()}
    with inside(ns_fd):
        return interfaces()


def ns_path(ns_fd: int) -> str:
    """A path by which this process's children can open a namespace that this process holds."""
    return f"/proc/{os.getpid()}/fd/{ns_fd}"
