"""Offloads off: otherwise a 60 KiB super-packet passes a shaper as one packet, and checksums in captures are wrong."""

import ctypes
import errno
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_SWITCHES = (
    0x00000017,  # ETHTOOL_STXCSUM; without it the kernel gives up scatter-gather, TSO and GSO as well
    0x0000001F,  # ETHTOOL_STSO
    0x00000024,  # ETHTOOL_SGSO
    0x0000002C,  # ETHTOOL_SGRO
)


def switch_off(ifname: str) -> None:
    """All offloads of an interface of the current namespace; what it cannot do in the first place is fine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for switch in _SWITCHES:
            value = ctypes.create_string_buffer(struct.pack("=II", switch, 0), 8)
            request = struct.pack("16sQ16x", ifname.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(sock, _SIOCETHTOOL, request)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise
