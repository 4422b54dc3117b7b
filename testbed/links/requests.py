"""The netlink requests that links are made of. Pure: each function returns one Request."""

import errno
import socket

from testbed.links import netlink_messages as m
from testbed.links.netlink import Request

CREATE = 0x400 | 0x200  # NLM_F_CREATE | NLM_F_EXCL
REPLACE = 0x400 | 0x100  # NLM_F_CREATE | NLM_F_REPLACE

_NEWLINK, _DELLINK, _SETLINK = 16, 17, 19
_NEWADDR = 20
_NEWROUTE, _DELROUTE = 24, 25
_NEWNEIGH = 28
_NEWRULE, _DELRULE = 32, 33

_IFF_UP = 1
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO = 1, 3, 4, 18
_IFLA_IFALIAS, _IFLA_AF_SPEC, _IFLA_NET_NS_FD = 20, 26, 28
_IFLA_GSO_MAX_SEGS = 40
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFLA_INET_CONF, _IPV4_DEVCONF_FORWARDING = 1, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_METRICS, _RTA_TABLE = 1, 4, 5, 6, 8, 15
_RTAX_CC_ALGO = 16
_FRA_SRC, _FRA_PRIORITY, _FRA_TABLE = 2, 6, 15
_RT_TABLE_MAIN, _RTNH_F_ONLINK = 254, 4
_SCOPE_UNIVERSE, _SCOPE_LINK, _SCOPE_NOWHERE = 0, 253, 255
_UNSPECIFIED, _UNICAST, _BLACKHOLE, _UNREACHABLE = 0, 1, 6, 7
_BEFORE_MAIN = 1000  # priority of our rules; the main table's is 32766
_NDA_DST, _NDA_LLADDR = 1, 2
_NUD_PERMANENT = 0x80
_ALIAS_LENGTH = 255  # the kernel keeps at most this many bytes
_LAST_RESORT = 4096  # metric of a route that counts only when no other is left
_ONE = 32  # prefix length of a single address


def add_veth(name: str, name_mac: str, peer: str, peer_ns: int, peer_mac: str, mtu: int) -> Request:
    """Make a veth pair; the kernel makes the peer inside the other namespace."""
    other = b"".join(
        (
            m.about_link(),
            m.text(_IFLA_IFNAME, peer),
            m.u32(_IFLA_MTU, mtu),
            m.mac(_IFLA_ADDRESS, peer_mac),
            m.u32(_IFLA_NET_NS_FD, peer_ns),
        )
    )
    body = b"".join(
        (
            m.about_link(),
            m.text(_IFLA_IFNAME, name),
            m.u32(_IFLA_MTU, mtu),
            m.mac(_IFLA_ADDRESS, name_mac),
            m.nest(
                _IFLA_LINKINFO,
                m.text(_IFLA_INFO_KIND, "veth"),
                m.nest(_IFLA_INFO_DATA, m.attribute(_VETH_INFO_PEER, other)),
            ),
        )
    )
    return Request(f"make link {name}", _NEWLINK, CREATE, body)


def delete_link(name: str) -> Request:
    """Remove an interface, and a veth's peer with it; a missing one is no error."""
    body = m.about_link() + m.text(_IFLA_IFNAME, name)
    return Request(f"remove link {name}", _DELLINK, 0, body, frozenset({errno.ENODEV}))


def raise_link(name: str) -> Request:
    """Switch an interface on."""
    body = m.about_link(flags=_IFF_UP, change=_IFF_UP) + m.text(_IFLA_IFNAME, name)
    return Request(f"raise {name}", _SETLINK, 0, body)


def describe(name: str, alias: str, mtu: int, mac: str, *, forwards: bool) -> Request:
    """Alias, packet size, MAC address, and whether packets that enter here may go on to other interfaces.

    TCP makes packets of several frames even where all offloads are off, and the kernel takes them apart behind the
    shaper, which would let all of their frames go at once: here it makes packets of one frame.

    Forwarding is set on each interface, because /proc/sys, with the switch for a namespace, may be read-only.
    """
    may_go_on = m.u32(_IPV4_DEVCONF_FORWARDING, int(forwards))
    body = b"".join(
        (
            m.about_link(),
            m.text(_IFLA_IFNAME, name),
            m.attribute(_IFLA_IFALIAS, alias.encode()[:_ALIAS_LENGTH]),
            m.u32(_IFLA_MTU, mtu),
            m.u32(_IFLA_GSO_MAX_SEGS, 1),
            m.mac(_IFLA_ADDRESS, mac),
            m.nest(_IFLA_AF_SPEC, m.nest(socket.AF_INET, m.nest(_IFLA_INET_CONF, may_go_on))),
        )
    )
    return Request(f"configure {name}", _SETLINK, 0, body)


def add_address(index: int, name: str, address: str) -> Request:
    """Add an IPv4 address without a network; it may exist already."""
    body = b"".join(
        (
            m.about_address(index, _ONE),
            m.ipv4(_IFA_LOCAL, address),
            m.ipv4(_IFA_ADDRESS, address),
        )
    )
    there = frozenset({errno.EEXIST})
    return Request(f"give {name} the address {address}", _NEWADDR, CREATE, body, there)


def add_neighbour(index: int, address: str, mac: str) -> Request:
    """A permanent neighbour entry for this address: ARP need not ask for it."""
    body = b"".join(
        (
            m.about_neighbour(index, _NUD_PERMANENT),
            m.ipv4(_NDA_DST, address),
            m.mac(_NDA_LLADDR, mac),
        )
    )
    return Request(f"enter neighbour {address}", _NEWNEIGH, REPLACE, body)


def route_to_neighbour(index: int, address: str) -> Request:
    """Route one address to the other end of this interface."""
    body = b"".join(
        (
            m.about_route(_ONE, _RT_TABLE_MAIN, _SCOPE_LINK, _UNICAST),
            m.ipv4(_RTA_DST, address),
            m.u32(_RTA_OIF, index),
        )
    )
    return Request(f"route {address}", _NEWROUTE, REPLACE, body)


def route_through(
    index: int, network: str, prefix_length: int, gateway: str, *, tcp: str | None = None
) -> Request:
    """Route a network through the gateway at the other end of this interface.

    `tcp`: the congestion control of all connections that take this route. As a namespace's sysctl, the
    kernel refuses all that the machine does not allow everybody; as a socket's option, it needs a right that programs
    in containers do not have. A route may name any that the kernel has.
    """
    body = b"".join(
        (
            m.about_route(prefix_length, _RT_TABLE_MAIN, _SCOPE_UNIVERSE, _UNICAST, _RTNH_F_ONLINK),
            m.ipv4(_RTA_DST, network),
            m.u32(_RTA_OIF, index),
            m.ipv4(_RTA_GATEWAY, gateway),
            m.nest(_RTA_METRICS, m.text(_RTAX_CC_ALGO, tcp)) if tcp else b"",
        )
    )
    what = f"route {network}/{prefix_length} through {gateway}"
    return Request(what, _NEWROUTE, REPLACE, body)


def refuse_otherwise(address: str) -> Request:
    """Answer `unreachable` if no better route to this address is left, rather than send the packet back."""
    body = b"".join(
        (
            m.about_route(_ONE, _RT_TABLE_MAIN, _SCOPE_UNIVERSE, _UNREACHABLE),
            m.ipv4(_RTA_DST, address),
            m.u32(_RTA_PRIORITY, _LAST_RESORT),
        )
    )
    return Request(f"route {address}", _NEWROUTE, REPLACE, body)


def delete_route(address: str) -> Request:
    """Delete the best route to one address; a missing one is no error."""
    body = b"".join(
        (
            m.about_route(_ONE, _RT_TABLE_MAIN, _SCOPE_NOWHERE, _UNSPECIFIED),
            m.ipv4(_RTA_DST, address),
        )
    )
    return Request(f"forget the way to {address}", _DELROUTE, 0, body, frozenset({errno.ESRCH}))


def add_rule(source: str, table: int) -> Request:
    """Look up packets from this address in this table before the others; the rule may exist already."""
    return Request(
        f"watch {source}", _NEWRULE, CREATE, _rule(source, table), frozenset({errno.EEXIST})
    )


def delete_rule(source: str, table: int) -> Request:
    """Undo it; a missing one is no error."""
    gone = frozenset({errno.ENOENT})
    return Request(f"watch {source} no more", _DELRULE, 0, _rule(source, table), gone)


def add_blackhole(address: str, table: int) -> Request:
    """Silently drop packets to this address that are looked up in this table."""
    return Request(f"lose packets to {address}", _NEWROUTE, REPLACE, _blackhole(address, table))


def delete_blackhole(address: str, table: int) -> Request:
    """Undo it; a missing one is no error."""
    gone = frozenset({errno.ESRCH})
    return Request(f"let packets to {address} pass", _DELROUTE, 0, _blackhole(address, table), gone)


def _rule(source: str, table: int) -> bytes:
    return b"".join(
        (
            m.about_rule(_ONE),
            m.ipv4(_FRA_SRC, source),
            m.u32(_FRA_PRIORITY, _BEFORE_MAIN),
            m.u32(_FRA_TABLE, table),
        )
    )


def _blackhole(address: str, table: int) -> bytes:
    return b"".join(
        (
            m.about_route(_ONE, _UNSPECIFIED, _SCOPE_UNIVERSE, _BLACKHOLE),
            m.ipv4(_RTA_DST, address),
            m.u32(_RTA_TABLE, table),
        )
    )
