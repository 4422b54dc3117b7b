"""Offloads of an interface: what is on, and switching them off and on again.

While a link is shaped they are off: else a 60 KiB super-packet passes a shaper as one packet, and checksums in captures
are wrong (as in testbed/links/offload.py).
"""

import ctypes
import errno
import fcntl
import socket
import struct
from collections.abc import Iterable

_SIOCETHTOOL = 0x8946
# ETHTOOL_G..., ETHTOOL_S...; checksums first, which the others need
_SWITCHES = {"tx": (0x16, 0x17), "tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
_VALUE = struct.Struct("=II")


def offloads_on(ifname: str) -> list[str]:
    """Those that are on now."""
    return [name for name, (ask, _) in _SWITCHES.items() if _ethtool(ifname, ask, 0)]


def switch(ifname: str, names: Iterable[str], on: bool) -> None:
    """These off or on; what the interface cannot do in the first place is fine."""
    for name in names:
        _ethtool(ifname, _SWITCHES[name][1], int(on))


def _ethtool(ifname: str, command: int, value: int) -> int:
    asked = ctypes.create_string_buffer(_VALUE.pack(command, value), _VALUE.size)
    request = struct.pack("16sP16x", ifname.encode(), ctypes.addressof(asked))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCETHTOOL, request)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return 0
    answer: int = _VALUE.unpack(asked.raw)[1]
    return answer
