"""Decodes packet headers for whole columns at once: link layer, IPv4 or IPv6, TCP or UDP.

Each field has a flag for the rows that have it. A packet that is not IP, or is truncated, keeps the fields that could
be read, and a `kind` that says so.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from analysis.captures.records import Array, Records, rows

NULL, ETHERNET, COOKED, LOOP, COOKED_2 = 0, 1, 113, 108, 276
RAW_IP = frozenset((12, 14, 101, 228, 229))
ETHERNET_HEADER, COOKED_HEADER, COOKED_2_HEADER, NULL_HEADER = 14, 16, 20, 4
IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
TAGS = (0x8100, 0x88A8, 0x9100)  # VLAN, and a VLAN within another
TAG_BYTES = 4
SMALLEST_TYPE = 0x600  # smaller values are a length (IEEE 802.3)
TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
IP_HEADER, IPV6_HEADER, TCP_HEADER, UDP_HEADER = 20, 40, 20, 8
FRAGMENT, AUTHENTICATION = 44, 51
EXTENSIONS = (0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140)
MORE_AND_PLACE = 0x3FFF  # of an IPv4 fragment
FAMILIES = {2: IPV4, **dict.fromkeys((24, 28, 30), IPV6)}  # as operating systems number them


class Kind(IntEnum):
    """What a packet is, as far as it could be read."""

    UNKNOWN = 0  # unsupported link type, or a truncated first header
    OTHER = 1  # neither IP nor ARP
    ARP = 2
    IP = 3  # another protocol, or a truncated or invalid TCP or UDP header
    FRAGMENT = 4  # of an IP packet
    ICMP = 5
    ICMPV6 = 6
    UDP = 7
    TCP = 8


@dataclass(frozen=True, slots=True)
class Headers:
    """The header fields of packets; flags say which rows have a field."""

    is_ethernet: Array
    eth_src: Array  # rows of six bytes
    eth_dst: Array
    has_type: Array
    eth_type: Array  # after all VLAN tags
    tags: Array  # how many
    vlan: Array
    inner_vlan: Array
    is_v4: Array
    is_v6: Array
    network: Array  # rows of 40 bytes: the IP header
    ip_len: Array
    ip_header: Array  # with all extensions
    ttl: Array
    proto: Array  # after all extensions
    is_tcp: Array
    is_udp: Array
    src_port: Array
    dst_port: Array
    seq: Array
    ack: Array
    flags: Array
    window: Array
    transport_header: Array
    payload_at: Array
    payload_len: Array  # as sent
    payload_seen: Array  # as kept
    kind: Array


ETHERNET_LAYOUT = np.dtype([("dst", "u1", 6), ("src", "u1", 6), ("type", ">u2")])
WORD_LAYOUT = np.dtype([("word", ">u2")])
TAG_LAYOUT = np.dtype([("tag", ">u2"), ("type", ">u2")])
NETWORK_LAYOUT = np.dtype("V40")
V4_LAYOUT = np.dtype(
    {
        "names": ["version", "len", "fragment", "ttl", "proto"],
        "formats": ["u1", ">u2", ">u2", "u1", "u1"],
        "offsets": [0, 2, 6, 8, 9],
        "itemsize": IPV6_HEADER,
    }
)
V6_LAYOUT = np.dtype(
    {
        "names": ["len", "proto", "ttl"],
        "formats": [">u2", "u1", "u1"],
        "offsets": [4, 6, 7],
        "itemsize": IPV6_HEADER,
    }
)
EXTENSION_LAYOUT = np.dtype([("next", "u1"), ("length", "u1"), ("fragment", ">u2")])
TCP_LAYOUT = np.dtype(
    [
        ("src_port", ">u2"),
        ("dst_port", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
    ]
)


@dataclass(slots=True)
class _Link:
    """Where the network layer begins, and the fields of the link layer."""

    at: Array
    eth_type: Array
    has_type: Array
    known: Array
    is_ethernet: Array
    eth_src: Array
    eth_dst: Array


@dataclass(slots=True)
class _Network:
    raw: Array
    is_v4: Array
    is_v6: Array
    ip_len: Array
    header: Array
    ttl: Array
    proto: Array
    whole: Array  # not a fragment


def decode(raw: Array, records: Records) -> Headers:
    """Decode the headers of these packets."""
    end = records.packet_at + records.caplen
    link = _link(raw, records, end)
    tags, vlan, inner_vlan = _tags(raw, link, end)
    network = _network(raw, link, end)
    at, captured = link.at + network.header, end - link.at - network.header
    is_ip = network.is_v4 | network.is_v6
    sent = network.ip_len - network.header
    is_tcp = network.whole & (network.proto == TCP) & (captured >= TCP_HEADER)
    is_udp = network.whole & (network.proto == UDP) & (captured >= UDP_HEADER)
    is_udp &= sent >= UDP_HEADER
    tcp = rows(raw, np.where(is_tcp | is_udp, at, 0), TCP_LAYOUT)
    tcp_header = (tcp["offset"] >> 4).astype(np.int64) * 4
    is_tcp &= (tcp_header >= TCP_HEADER) & (captured >= tcp_header) & (sent >= tcp_header)
    has_ports = is_tcp | is_udp  # ports have the same offset in TCP and UDP
    header = np.where(is_udp, UDP_HEADER, tcp_header) * has_ports
    payload_len = (sent - header) * has_ports
    return Headers(
        is_ethernet=link.is_ethernet,
        eth_src=link.eth_src,
        eth_dst=link.eth_dst,
        has_type=link.has_type,
        eth_type=link.eth_type,
        tags=tags,
        vlan=vlan,
        inner_vlan=inner_vlan,
        is_v4=network.is_v4,
        is_v6=network.is_v6,
        network=network.raw,
        ip_len=network.ip_len,
        ip_header=network.header,
        ttl=network.ttl,
        proto=network.proto,
        is_tcp=is_tcp,
        is_udp=is_udp,
        src_port=tcp["src_port"],
        dst_port=tcp["dst_port"],
        seq=tcp["seq"],
        ack=tcp["ack"],
        flags=tcp["flags"],
        window=tcp["window"],
        transport_header=header,
        payload_at=(at + header) * has_ports,
        payload_len=payload_len,
        payload_seen=np.minimum(payload_len, np.maximum(captured - header, 0)) * has_ports,
        kind=_kinds(link, network, is_ip, is_tcp, is_udp),
    )


def _kinds(link: _Link, network: _Network, is_ip: Array, is_tcp: Array, is_udp: Array) -> Array:
    kind = link.known.astype(np.int8)  # UNKNOWN or OTHER
    kind[link.known & (link.eth_type == ARP)] = Kind.ARP
    kind[is_ip] = Kind.IP
    kind[network.is_v4 & network.whole & (network.proto == ICMP)] = Kind.ICMP
    kind[network.is_v6 & network.whole & (network.proto == ICMPV6)] = Kind.ICMPV6
    kind[is_ip & ~network.whole] = Kind.FRAGMENT
    kind[is_udp] = Kind.UDP
    kind[is_tcp] = Kind.TCP
    return kind


def _link(raw: Array, records: Records, end: Array) -> _Link:
    """Decode each link type separately; most captures have one."""
    count = len(records.packet_at)
    kinds = np.unique(records.link_type).tolist() if count else []
    if kinds == [ETHERNET]:
        return _ethernet(raw, records.packet_at, end)
    no_rows = np.zeros(count, bool)
    link = _Link(
        at=records.packet_at.copy(),
        eth_type=np.zeros(count, np.uint16),
        has_type=no_rows.copy(),
        known=no_rows.copy(),
        is_ethernet=no_rows.copy(),
        eth_src=np.zeros((count, 6), np.uint8),
        eth_dst=np.zeros((count, 6), np.uint8),
    )
    for kind in kinds:
        mine = records.link_type == kind
        at, until = records.packet_at[mine], end[mine]
        if kind == ETHERNET:
            found = _ethernet(raw, at, until)
            link.is_ethernet[mine] = found.is_ethernet
            link.eth_src[mine], link.eth_dst[mine] = found.eth_src, found.eth_dst
        elif kind in (COOKED, COOKED_2):
            found = _cooked(raw, at, until, kind)
        elif kind in RAW_IP:
            found = _bare(raw, at, until)
        elif kind in (NULL, LOOP):
            found = _loopback(raw, at, until)
        else:
            continue
        link.at[mine], link.known[mine] = found.at, found.known
        link.eth_type[mine], link.has_type[mine] = found.eth_type, found.has_type
    return link


def _plain(at: Array, known: Array, eth_type: Array, has_type: Array) -> _Link:
    """A link without Ethernet addresses."""
    no_address = np.zeros((0, 6), np.uint8)
    return _Link(
        at, eth_type * known, has_type, known, np.zeros(len(at), bool), no_address, no_address
    )


def _ethernet(raw: Array, at: Array, end: Array) -> _Link:
    known = end - at >= ETHERNET_HEADER
    found = rows(raw, at, ETHERNET_LAYOUT)
    eth_type = found["type"] * known
    return _Link(
        at=at + ETHERNET_HEADER * known,
        eth_type=eth_type,
        has_type=eth_type >= SMALLEST_TYPE,
        known=known,
        is_ethernet=known,
        eth_src=found["src"],
        eth_dst=found["dst"],
    )


def _cooked(raw: Array, at: Array, end: Array, kind: int) -> _Link:
    size, type_at = (COOKED_HEADER, 14) if kind == COOKED else (COOKED_2_HEADER, 0)
    known = end - at >= size
    eth_type = rows(raw, at + type_at * known, WORD_LAYOUT)["word"] * known
    return _plain(at + size * known, known, eth_type, eth_type >= SMALLEST_TYPE)


def _bare(raw: Array, at: Array, end: Array) -> _Link:
    """Raw IP: the first four bits are the version."""
    known = end > at
    version = rows(raw, at, np.dtype("u1")) >> 4
    eth_type = np.where(version == 4, IPV4, np.where(version == 6, IPV6, 0)).astype(np.uint16)
    return _plain(at, known & (eth_type > 0), eth_type, np.zeros(len(at), bool))


def _loopback(raw: Array, at: Array, end: Array) -> _Link:
    """BSD loopback: the number of an address family, in the byte order of the capturing machine."""
    known = end - at >= NULL_HEADER
    found = rows(raw, at, np.dtype([("family", "<u4")]))["family"]
    found = np.where(found >> 16 == 0, found, found.byteswap())
    eth_type = np.zeros(len(at), np.uint16)
    for family, its_type in FAMILIES.items():
        eth_type[found == family] = its_type
    return _plain(at + NULL_HEADER * known, known, eth_type, np.zeros(len(at), bool))


def _tags(raw: Array, link: _Link, end: Array) -> tuple[Array, Array, Array]:
    """Skip the VLAN tags; returns their number, the first id and the second id."""
    count = len(link.at)
    tags = np.zeros(count, np.int8)
    ids = np.zeros((2, count), np.int32)
    tagged = np.flatnonzero(np.isin(link.eth_type, TAGS) & link.has_type)
    while len(tagged := tagged[link.at[tagged] + TAG_BYTES <= end[tagged]]):
        found = rows(raw, link.at[tagged], TAG_LAYOUT)
        number = tags[tagged]
        for place in (0, 1):
            mine = number == place
            ids[place, tagged[mine]] = found["tag"][mine] & 0x0FFF
        tags[tagged] = np.minimum(number + 1, 2)
        link.at[tagged] += TAG_BYTES
        link.eth_type[tagged] = found["type"]
        link.has_type[tagged] = found["type"] >= SMALLEST_TYPE
        tagged = tagged[np.isin(found["type"], TAGS)]
    return tags, ids[0], ids[1]


def _network(raw: Array, link: _Link, end: Array) -> _Network:
    taken = rows(raw, link.at, NETWORK_LAYOUT)
    v4, captured = taken.view(V4_LAYOUT), end - link.at
    header = (v4["version"] & 0x0F).astype(np.int64) * 4
    version = v4["version"] >> 4
    is_v4 = (link.eth_type == IPV4) & (version == 4)
    is_v4 &= (header >= IP_HEADER) & (captured >= header)
    header *= is_v4
    found = _Network(
        raw=taken,
        is_v4=is_v4,
        is_v6=(link.eth_type == IPV6) & (version == 6) & (captured >= IPV6_HEADER),
        ip_len=v4["len"] * is_v4.astype(np.int64),
        header=header,
        ttl=v4["ttl"] * is_v4,
        proto=v4["proto"] * is_v4,
        whole=is_v4 & (v4["fragment"] & MORE_AND_PLACE == 0),
    )
    six = np.flatnonzero(found.is_v6)
    if len(six):
        _version_6(raw, link, end, found, six)
    return found


def _version_6(raw: Array, link: _Link, end: Array, found: _Network, six: Array) -> None:
    v6 = found.raw[six].view(V6_LAYOUT)
    found.ip_len[six] = v6["len"].astype(np.int64) + IPV6_HEADER
    found.header[six], found.ttl[six], found.proto[six] = IPV6_HEADER, v6["ttl"], v6["proto"]
    found.whole[six] = True
    more = six[np.isin(v6["proto"], EXTENSIONS)]
    while len(more):
        at = link.at[more] + found.header[more]
        there = at + 8 <= end[more]
        more, at = more[there], at[there]
        kind, header = found.proto[more], rows(raw, at, EXTENSION_LAYOUT)
        size = (header["length"].astype(np.int64) + 1) * 8
        size = np.where(kind == AUTHENTICATION, (header["length"].astype(np.int64) + 2) * 4, size)
        size = np.where(kind == FRAGMENT, 8, size)
        divided = (kind == FRAGMENT) & (header["fragment"] & 0xFFF9 != 0)
        later = divided & (header["fragment"] & 0xFFF8 != 0)
        found.whole[more[divided]] = False
        found.header[more] += size
        found.proto[more] = header["next"]
        more = more[np.isin(header["next"], EXTENSIONS) & ~later]
