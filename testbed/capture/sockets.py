"""The capture socket: a scapy listening socket on one interface, with the kernel's own time stamps.

In a lab it receives only what comes in: each link has a socket at both ends. A board has one for both directions.

scapy's `recv_raw` turns the time into a float and so loses the nanoseconds; here the packet is received as it is.
"""

import ctypes
import errno
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from scapy.arch.linux import L2ListenSocket, LinuxInterfaceProvider
from scapy.config import conf
from scapy.interfaces import NetworkInterface
from scapy.packet import Raw

from testbed.capture.pcap import lift
from testbed.capture.records import Record

LONGEST_FRAME = 65535
RECEIVE_BUFFER = 16 << 20  # bytes; taken only while packets wait
BURST = 256  # packets taken from one socket before the others have their turn

_ETH_P_ALL = 0x0003
_ARPHRD_ETHER = 1
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_AUXDATA = 8
_PACKET_IGNORE_OUTGOING = 23
_SO_ATTACH_FILTER = 26
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_INSTRUCTION = struct.Struct("HBBI")  # struct sock_filter
_PROGRAM = struct.Struct("HP")  # struct sock_fprog
_TIMESPEC = struct.Struct("ll")
_STATISTICS = struct.Struct("II")  # packets (dropped ones too), dropped
_AUXDATA = struct.Struct("IIIHHHH")  # ends with the VLAN's TCI and TPID
_VLAN_VALID = 0x10
_VLAN_TPID_VALID = 0x40
_TPID_8021Q = 0x8100
_ADDRESSES = 12  # bytes of an Ethernet frame before the place of a VLAN tag
_ANCILLARY = socket.CMSG_SPACE(_TIMESPEC.size) + socket.CMSG_SPACE(_AUXDATA.size)

# Frames stay bytes here. The layers that would dissect them take most of scapy's second of loading time, so Ethernet
# is made known as raw bytes, unless a program has loaded the real layer.
if _ARPHRD_ETHER not in conf.l2types:
    conf.l2types.register_num2layer(_ARPHRD_ETHER, Raw)
if conf.default_l2 is None:
    conf.default_l2 = Raw


class CaptureSocket(L2ListenSocket):  # type: ignore[misc]  # scapy has no types
    """Receives the frames of one interface, which may still be down. To be made inside its namespace.

    `outgoing`: also the frames that it sends. `only`: a BPF program (nodes.board.bpf) that filters.
    """

    ins: socket.socket

    def __init__(
        self,
        ifname: str,
        *,
        outgoing: bool = False,
        only: Sequence[tuple[int, int, int, int]] = (),
    ) -> None:
        self._dropped = 0
        try:
            # Protocol 0 receives nothing: all options are in place before the first frame, and none of a
            # neighbouring interface slips in before the socket is bound.
            super().__init__(iface=_interface(ifname), type=0, promisc=False, nofilter=1)
            if self.ins.getsockname()[3] != _ARPHRD_ETHER:
                raise OSError(errno.EPFNOSUPPORT, "it is no Ethernet interface")
            self.ins = socket.socket(fileno=lift(self.ins.detach()))
            self.ins.setblocking(False)
            if not outgoing:
                self.ins.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            if only:
                self.choose(only)
            _enlarge_buffer(self.ins)
            self.ins.bind((ifname, _ETH_P_ALL))
            self.ins.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # ENETDOWN, if it is still down
        except OSError:
            self.close()
            raise

    def choose(self, program: Sequence[tuple[int, int, int, int]]) -> None:
        """Receive only frames that this program accepts, from now on."""
        code = b"".join([_INSTRUCTION.pack(*one) for one in program])
        memory = ctypes.create_string_buffer(code, len(code))
        about = _PROGRAM.pack(len(program), ctypes.addressof(memory))
        self.ins.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, about)

    def receive(self, buffer: memoryview) -> tuple[list[Record], bool]:
        """At most BURST frames, cut to the buffer's size, and whether more may be waiting."""
        records: list[Record] = []
        receive, into = self.ins.recvmsg_into, [buffer]
        for _ in range(BURST):
            try:
                length, ancillary, _flags, _address = receive(into, _ANCILLARY, socket.MSG_TRUNC)
            except BlockingIOError:
                return records, False
            except OSError as error:
                if error.errno != errno.ENETDOWN:
                    raise
                continue  # reported once each time the interface goes down
            records.append(_record(length, buffer, ancillary))
        return records, True

    @property
    def gone(self) -> bool:
        """The interface was removed: nothing will ever come again."""
        name: str = self.ins.getsockname()[0]
        return name == ""

    def dropped(self) -> int:
        """Frames that found the receive buffer full, so far (the kernel forgets its count when asked)."""
        try:
            answer = self.ins.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:  # qemu does not ask the kernel for it: unknown
                raise
        else:
            self._dropped += _STATISTICS.unpack(answer)[1]
        return self._dropped


def _record(length: int, buffer: memoryview, ancillary: list[tuple[int, int, bytes]]) -> Record:
    """One frame with the kernel's time stamp; a VLAN tag, which it hands over separately, is put back."""
    time_ns = 0
    data = bytes(buffer[:length])
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _TIMESPEC.unpack(content)
            time_ns = seconds * 1_000_000_000 + nanoseconds
        elif level == _SOL_PACKET and kind == _PACKET_AUXDATA and content[0] & _VLAN_VALID:
            status, *_, tci, tpid = _AUXDATA.unpack(content)
            tag = struct.pack("!HH", tpid if status & _VLAN_TPID_VALID else _TPID_8021Q, tci)
            data = (data[:_ADDRESSES] + tag + data[_ADDRESSES:])[: len(buffer)]
            length += len(tag)
    return time_ns or time.time_ns(), length, data


def _interface(ifname: str) -> NetworkInterface:
    """The interface as scapy wants it, without listing all interfaces of the namespace."""
    names = {"name": ifname, "description": ifname, "network_name": ifname}
    return NetworkInterface(LinuxInterfaceProvider(), names)


def _enlarge_buffer(sock: socket.socket) -> None:
    """A large receive buffer: beyond the machine's limit if allowed (root), else up to it."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER)
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


# The end of a capture process.


@contextmanager
def termination() -> Iterator[int]:
    """A descriptor that becomes readable on SIGTERM. Ctrl-C is left to the command that started the lab."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)
