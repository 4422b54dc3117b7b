"""The netlink requests that links are made of. Pure: each function returns one Request."""

import errno
import socket
from typing import Any

from pyroute2.netlink import NLA_F_NESTED
from pyroute2.netlink.rtnl import (
    RTM_DELLINK,
    RTM_DELNEIGH,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWNEIGH,
    RTM_SETLINK,
)
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.ndmsg import NTF_MASTER, NUD_NOARP, NUD_PERMANENT, ndmsg

from testbed.links.netlink import Request

CREATE = 0x400 | 0x200  # NLM_F_CREATE | NLM_F_EXCL
REPLACE = 0x400 | 0x100  # NLM_F_CREATE | NLM_F_REPLACE
AF_BRIDGE = 7
_IFF_UP = 1
_ALIAS_LENGTH = 255  # the kernel keeps at most this many bytes


def _link(attributes: list[tuple[str, Any]], *, up: bool = False, index: int = 0) -> ifinfmsg:
    message = ifinfmsg()
    message["index"] = index
    if up:
        message["flags"] = message["change"] = _IFF_UP
    message["attrs"] = attributes
    return message


def add_bridge(name: str, mac: str) -> Request:
    """A bridge that forwards at once and says nothing of its own.

    With a MAC address given, it does not change with the ports; each change would empty the neighbour table.
    """
    options = {
        "attrs": [
            ("IFLA_BR_STP_STATE", 0),
            ("IFLA_BR_FORWARD_DELAY", 0),
            ("IFLA_BR_MCAST_SNOOPING", 0),
        ]
    }
    kind = {"attrs": [("IFLA_INFO_KIND", "bridge"), ("IFLA_INFO_DATA", options)]}
    message = _link(
        [("IFLA_IFNAME", name), ("IFLA_ADDRESS", mac), ("IFLA_LINKINFO", kind)], up=True
    )
    return Request(f"make bridge {name}", RTM_NEWLINK, CREATE, message)


def add_veth(name: str, mtu: int, peer: str, peer_ns: int, peer_mac: str) -> Request:
    """A pair of interfaces; the peer is born inside the other namespace."""
    other = {
        "attrs": [
            ("IFLA_IFNAME", peer),
            ("IFLA_MTU", mtu),
            ("IFLA_ADDRESS", peer_mac),
            ("IFLA_NET_NS_FD", peer_ns),
        ]
    }
    kind = {
        "attrs": [
            ("IFLA_INFO_KIND", "veth"),
            ("IFLA_INFO_DATA", {"attrs": [("VETH_INFO_PEER", other)]}),
        ]
    }
    message = _link([("IFLA_IFNAME", name), ("IFLA_MTU", mtu), ("IFLA_LINKINFO", kind)])
    return Request(f"make link {name}", RTM_NEWLINK, CREATE, message)


def delete_link(name: str) -> Request:
    """Remove an interface, and a veth's peer with it; none is fine."""
    gone = frozenset({errno.ENODEV})
    message = _link([("IFLA_IFNAME", name)])
    return Request(f"remove link {name}", RTM_DELLINK, 0, message, gone)


def raise_link(name: str) -> Request:
    """Switch an interface on."""
    return Request(f"raise {name}", RTM_SETLINK, 0, _link([("IFLA_IFNAME", name)], up=True))


def describe(
    index: int,
    name: str,
    alias: str,
    mtu: int,
    *,
    mac: str | None = None,
    master: int | None = None,
) -> Request:
    """Alias, packet size, MAC address and bridge of an interface."""
    attributes: list[tuple[str, Any]] = [
        ("IFLA_IFALIAS", alias.encode()[:_ALIAS_LENGTH].decode(errors="ignore")),
        ("IFLA_MTU", mtu),
    ]
    if mac is not None:
        attributes.append(("IFLA_ADDRESS", mac))
    if master is not None:
        attributes.append(("IFLA_MASTER", master))
    return Request(f"configure {name}", RTM_SETLINK, 0, _link(attributes, index=index))


def quiet_port(index: int, name: str) -> Request:
    """The bridge learns nothing here, floods no unknown unicast here, and answers ARP questions for stations here.

    Otherwise every ARP question would cross every slow link of the lab. ("Wifi" is the kernel's name for
    proxy ARP that keeps other broadcasts working.)
    """
    message = _link([], index=index)
    message["family"] = AF_BRIDGE
    settings = [
        ("IFLA_BRPORT_LEARNING", 0),
        ("IFLA_BRPORT_UNICAST_FLOOD", 0),
        ("IFLA_BRPORT_PROXYARP_WIFI", 1),
    ]
    message["attrs"] = [("IFLA_PROTINFO", {"attrs": settings}, NLA_F_NESTED)]
    return Request(f"quieten bridge port {name}", RTM_SETLINK, 0, message)


def add_address(index: int, name: str, address: str, prefix_length: int) -> Request:
    """An IPv4 address."""
    message = ifaddrmsg()
    message["family"] = socket.AF_INET
    message["index"] = index
    message["prefixlen"] = prefix_length
    message["attrs"] = [("IFA_LOCAL", address), ("IFA_ADDRESS", address)]
    return Request(f"give {name} the address {address}", RTM_NEWADDR, CREATE, message)


def add_station(index: int, name: str, mac: str) -> Request:
    """Tell the bridge which MAC address is behind this port."""
    message = ndmsg()
    message["family"] = AF_BRIDGE
    message["ifindex"] = index
    message["state"] = NUD_NOARP
    message["flags"] = NTF_MASTER
    message["attrs"] = [("NDA_LLADDR", mac)]
    return Request(f"enter {mac} at port {name}", RTM_NEWNEIGH, REPLACE, message)


def add_neighbour(index: int, address: str, mac: str) -> Request:
    """What the bridge answers when somebody asks by ARP for this address."""
    message = ndmsg()
    message["family"] = socket.AF_INET
    message["ifindex"] = index
    message["state"] = NUD_PERMANENT
    message["attrs"] = [("NDA_DST", address), ("NDA_LLADDR", mac)]
    return Request(f"enter neighbour {address}", RTM_NEWNEIGH, REPLACE, message)


def delete_neighbour(index: int, address: str) -> Request:
    """The bridge no longer answers for this address; none is fine."""
    message = ndmsg()
    message["family"] = socket.AF_INET
    message["ifindex"] = index
    message["attrs"] = [("NDA_DST", address)]
    gone = frozenset({errno.ENOENT})
    return Request(f"forget neighbour {address}", RTM_DELNEIGH, 0, message, gone)
