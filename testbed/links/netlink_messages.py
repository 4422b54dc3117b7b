"""Netlink's parts as bytes: attributes and the fixed structures in front of them (linux/rtnetlink.h). Pure.

Written with `struct`, because hundreds of links are made of thousands of messages: a library that describes each one as
nested dictionaries took three quarters of the time. The tests read these bytes back with such a library (pyroute2).
"""

import socket
import struct

_ATTRIBUTE = struct.Struct("=HH")  # length, type
_U8 = struct.Struct("=B")
_U32 = struct.Struct("=I")
_U64 = struct.Struct("=Q")
_S64 = struct.Struct("=q")
_IFINFOMSG = struct.Struct("=BxHiII")  # family, type, index, flags, change
_IFADDRMSG = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, index
_RTMSG = struct.Struct("=BBBBBBBBI")  # family, lengths, tos, table, protocol, scope, type, flags
_NDMSG = struct.Struct("=BxxxiHBB")  # family, index, state, flags, type
_TCMSG = struct.Struct("=BxxxiIII")  # family, index, handle, parent, info
_NLA_F_NESTED = 0x8000


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def nest(kind: int, *parts: bytes) -> bytes:
    """An attribute made of attributes."""
    return attribute(kind | _NLA_F_NESTED, b"".join(parts))


def text(kind: int, value: str) -> bytes:
    """Characters with a zero behind them."""
    return attribute(kind, value.encode() + b"\0")


def u8(kind: int, value: int) -> bytes:
    """A number of 8 bits."""
    return attribute(kind, _U8.pack(value))


def u32(kind: int, value: int) -> bytes:
    """A number of 32 bits."""
    return attribute(kind, _U32.pack(value))


def u64(kind: int, value: int) -> bytes:
    """A number of 64 bits."""
    return attribute(kind, _U64.pack(value))


def s64(kind: int, value: int) -> bytes:
    """A number of 64 bits that may be below zero."""
    return attribute(kind, _S64.pack(value))


def mac(kind: int, value: str) -> bytes:
    """A MAC address, written with colons."""
    return attribute(kind, bytes.fromhex(value.replace(":", "")))


def ipv4(kind: int, value: str) -> bytes:
    """An IPv4 address, written with dots."""
    return attribute(kind, socket.inet_aton(value))


def about_link(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    """struct ifinfomsg."""
    return _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, flags, change)


def about_address(index: int, prefix_length: int) -> bytes:
    """struct ifaddrmsg."""
    return _IFADDRMSG.pack(socket.AF_INET, prefix_length, 0, 0, index)


def about_route(prefix_length: int, table: int, scope: int, kind: int, flags: int = 0) -> bytes:
    """struct rtmsg."""
    static = 4  # RTPROT_STATIC: by an administrator, that is us
    return _RTMSG.pack(socket.AF_INET, prefix_length, 0, 0, table, static, scope, kind, flags)


def about_rule(source_length: int) -> bytes:
    """struct fib_rule_hdr, for a rule that names a table; it is laid out as rtmsg."""
    to_table = 1  # FR_ACT_TO_TBL
    return _RTMSG.pack(socket.AF_INET, 0, source_length, 0, 0, 0, 0, to_table, 0)


def about_neighbour(index: int, state: int) -> bytes:
    """struct ndmsg."""
    return _NDMSG.pack(socket.AF_INET, index, state, 0, 0)


def about_queueing(index: int, handle: int, parent: int, info: int = 0) -> bytes:
    """struct tcmsg."""
    return _TCMSG.pack(socket.AF_UNSPEC, index, handle, parent, info)
