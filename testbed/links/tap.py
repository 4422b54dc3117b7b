"""Tap interfaces: what the kernel sends there, a process reads; what it writes, the kernel receives."""

import errno
import fcntl
import os
import struct
from contextlib import suppress

from testbed.errors import MissingCapability

DEVICE = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_TUNSETPERSIST = 0x400454CB
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_HINTS = {
    errno.ENOENT: "load the module with `sudo modprobe tun`",
    errno.ENODEV: "load the module with `sudo modprobe tun`",
    errno.EACCES: f"allow it with `sudo chmod 666 {DEVICE}`, or use sudo",
    errno.EPERM: f"in a container, pass it in with --device {DEVICE}",
}


def open_tap(ifname: str) -> int:
    """A new tap in the current namespace, down; it goes with `close_tap`, or with the namespace.

    It outlives its descriptor on purpose: when a relay of hundreds of links ends, the kernel would remove tap after
    tap (some 20 ms each), but it takes a whole namespace away at once.
    """
    try:
        fd = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise MissingCapability(
            f"cannot open {DEVICE}: {error.strerror}", _HINTS.get(error.errno or 0, "use sudo")
        ) from error
    try:
        request = struct.pack("16sH22x", ifname.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(fd, _TUNSETIFF, request)
        fcntl.ioctl(fd, _TUNSETPERSIST, 1)
    except OSError as error:
        os.close(fd)
        raise MissingCapability(
            f"cannot make the tap interface {ifname}: {error.strerror}",
            _HINTS.get(error.errno or 0, "see `testbed doctor`"),
        ) from error
    return fd


def close_tap(fd: int) -> None:
    """Remove the tap."""
    with suppress(OSError):  # its namespace may be gone, and the tap with it
        fcntl.ioctl(fd, _TUNSETPERSIST, 0)
    os.close(fd)
