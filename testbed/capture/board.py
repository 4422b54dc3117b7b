"""capture.pyz: captures one interface of a board, both directions, until SIGTERM.

Made to be cut off at any moment: the file holds whole records only, is brought to the disk every few seconds, and is
continued by the next start. Records that the disk does not take are counted in the statistics file.
"""

import argparse
import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from nodes.board.errors import BoardError
from nodes.board.links import read_links
from nodes.board.plan import PREFIX, read_note
from testbed.capture.bpf_filter import interface_filter, shaper_filter
from testbed.capture.link import CapturedLink
from testbed.capture.pcap import PcapFile
from testbed.capture.sockets import LONGEST_FRAME, CaptureSocket, termination
from testbed.errors import TestbedError

# The statistics of a board's capture: a small JSON file, renewed each second, for `testbed collect`.
#
# A capture that continues after a break continues its statistics; `gaps` lists the times without a capture.


class CaptureStatistics:
    """Counts, the time that they cover, and errors."""

    def __init__(self, path: Path, began_ns: int, goes_on: bool) -> None:
        self._path = path
        self._began_ns = began_ns
        self._gaps: list[list[int]] = []
        self._dropped_before = 0
        if goes_on and (before := _read(path)):
            self._began_ns = before["began_ns"]
            self._dropped_before = before["dropped"]
            self._gaps = [*before.get("gaps", []), [before["until_ns"], began_ns]]

    def write(
        self, counts: Mapping[str, int], now_ns: int, error: str = "", *, ended: bool = False
    ) -> bool:
        """Write the file as a whole; False if the disk is full even for that."""
        data = {
            "packets": counts["packets"],
            "bytes": counts["bytes"],
            "dropped": counts["dropped"] + self._dropped_before,
            "error": error,
            "began_ns": self._began_ns,
            "until_ns": now_ns,
            "ended": ended,
            "gaps": self._gaps,
        }
        text = json.dumps(data).encode() + b"\n"
        fresh = self._path.with_name(f".{self._path.name}.new")
        try:
            fresh.write_bytes(text)
            fresh.replace(self._path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            return self._overwrite(text)
        return True

    def _overwrite(self, text: bytes) -> bool:
        """A full disk still takes what needs no more space than before: spaces at the end mean nothing in JSON."""
        try:
            with self._path.open("r+b", buffering=0) as file:
                padded = text.ljust(os.fstat(file.fileno()).st_size)
                return file.write(padded) == len(padded)
        except OSError:
            return False


def _read(path: Path) -> dict[str, Any] | None:
    """None if it is not there or torn."""
    try:
        data = json.loads(path.read_bytes())
        numbers = (data["began_ns"], data["until_ns"], data["dropped"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return data if all(isinstance(number, int) for number in numbers) else None


# Finds out whether packets of peers are shaped on their way into a board (`nodes.board.shaping`), and where they
# come out again: the interface itself receives them before that.


_INTERFACES = Path("/sys/class/net")


@dataclass(frozen=True, slots=True)
class Shaper:
    """The device that such packets come through, and the networks of their senders."""

    device: str
    peers: tuple[IPv4Network, ...]


def shaper_of(interface: str, before: Shaper | None) -> Shaper | None:
    """The one in force. While it is being changed, or if its file cannot be read, it counts as it was `before`."""
    for _, name in socket.if_nameindex():
        if not name.startswith(PREFIX):
            continue
        try:
            note = read_note((_INTERFACES / name / "ifalias").read_text())
            if note is None or note.interface != interface:
                continue
            if not note.plan:
                return before
            return Shaper(name, read_links(Path(note.testbed)).peers) if note.down else None
        except (OSError, BoardError):
            return before if before and before.device == name else None
    return None


RELEASE_INTERVAL_S = 0.08  # a record is in its file after at most two of these
CHECK_INTERVAL_S = 1.0  # so often the statistics are written and the interface is checked
SYNC_INTERVAL_S = 5.0  # so much a loss of power may cost
NAP_S = 0.005  # after a quiet round: many packets are then taken at once instead of one by one
MOST_PORTS = 16


class Recorder:
    """The sockets on one interface, and the loop that serves them."""

    def __init__(self, interface: str, ports: Sequence[int], link: CapturedLink) -> None:
        self._interface = interface
        self._ports = ports
        self._link = link
        self._poll = select.epoll()
        self._buffer = memoryview(bytearray(LONGEST_FRAME))
        self._sockets: dict[int, CaptureSocket] = {}  # by descriptor
        self._interface_socket: CaptureSocket | None = None
        self._shaper_socket: CaptureSocket | None = None
        self._shaper: Shaper | None = None
        self._interface_socket = self._open(interface, interface_filter(ports))
        self.check()

    def serve(self, statistics: CaptureStatistics) -> None:
        """Run until SIGTERM; then everything received is in the file."""
        with termination() as wakeup:
            self._poll.register(wakeup, select.EPOLLIN)
            ended = False
            release_at = check_at = 0.0
            while not ended:
                now = time.monotonic()
                if now >= release_at:
                    self._link.release()
                    release_at = now + RELEASE_INTERVAL_S
                if now >= check_at:
                    self.check()
                    statistics.write(self._link.counts(), time.time_ns(), self.error())
                    check_at = now + CHECK_INTERVAL_S
                until = check_at if self._link.idle else min(check_at, release_at)
                received = behind = False
                for descriptor, mask in self._poll.poll(max(0.0, until - time.monotonic())):
                    if descriptor == wakeup:
                        ended = True
                    elif descriptor in self._sockets:
                        received = True
                        behind |= self._receive(self._sockets[descriptor], mask)
                if received and not behind and not ended:
                    time.sleep(NAP_S)
            for sock in self._sockets.values():
                self._link.drain(sock, self._buffer, time.time_ns())
            self._link.finish()
            statistics.write(self._link.counts(), time.time_ns(), self.error(), ended=True)

    def error(self) -> str:
        """What is wrong now, or was with the disk."""
        gone = f"{self._interface} is gone" if self._interface_socket is None else ""
        return "; ".join(filter(None, (self._link.file.error, gone)))

    def check(self) -> None:
        """Listen where packets are: an interface may come back, and its shaping come and go."""
        if self._interface_socket is None:
            with suppress(OSError):
                self._interface_socket = self._open(self._interface, interface_filter(self._ports))
                self._shaper = None
        shaper = shaper_of(self._interface, self._shaper)
        if self._interface_socket is None or shaper == self._shaper:
            return
        if self._shaper_socket is not None:
            self._link.drain(self._shaper_socket, self._buffer, time.time_ns())
            self._close(self._shaper_socket)
        peers = shaper.peers if shaper else ()
        try:
            if shaper:
                self._shaper_socket = self._open(shaper.device, shaper_filter(self._ports, peers))
            self._interface_socket.choose(interface_filter(self._ports, peers))
        except OSError:  # the device is gone again, or the interface: the next check will show it
            return
        self._shaper = shaper

    def _receive(self, sock: CaptureSocket, mask: int) -> bool:
        more = self._link.take(sock, self._buffer)
        if mask & select.EPOLLERR and not more and sock.gone:
            self._close(sock)
            self.check()
        return more

    def _open(self, device: str, program: Sequence[tuple[int, int, int, int]]) -> CaptureSocket:
        sock = CaptureSocket(device, outgoing=True, only=program)
        self._link.sockets.append(sock)
        self._sockets[sock.fileno()] = sock
        self._poll.register(sock.fileno(), select.EPOLLIN)
        return sock

    def _close(self, sock: CaptureSocket) -> None:
        self._poll.unregister(sock.fileno())
        del self._sockets[sock.fileno()]
        self._link.close_socket(sock)
        if sock is self._interface_socket:
            self._interface_socket = None
        else:
            self._shaper_socket = None


def _keep_on_disk(path: Path) -> None:
    """Bring the file to the disk every few seconds, in a thread: a slow card must not keep us from listening."""

    def keep() -> None:
        while True:
            time.sleep(SYNC_INTERVAL_S)
            _sync(path)

    threading.Thread(target=keep, daemon=True).start()


def _sync(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process; the exit code."""
    asked = _arguments(arguments)
    began_ns = time.time_ns()
    try:
        file = PcapFile(asked.file, asked.snaplen)
        link = CapturedLink(asked.interface, file, asked.snaplen)
        statistics = CaptureStatistics(asked.statistics, began_ns, goes_on=file.before.end > 0)
        try:
            recorder = Recorder(asked.interface, asked.without_port, link)
        except OSError as error:
            sentence = f"cannot listen on {asked.interface}: {error.strerror or error}"
            statistics.write(link.counts(), time.time_ns(), sentence, ended=True)
            return _report_failure(sentence, TestbedError.exit_code)
    except TestbedError as error:
        return _report_failure(f"{error.message}; {error.hint}", error.exit_code)
    except OSError as error:
        return _report_failure(
            f"cannot write {asked.file}: {error.strerror}", TestbedError.exit_code
        )
    _keep_on_disk(asked.file)
    recorder.serve(statistics)
    _sync(asked.file)
    return 0


def _report_failure(sentence: str, exit_code: int) -> int:
    sys.stderr.write(sentence + "\n")
    return exit_code


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("capture.pyz", description="Capture a board's interface.")
    parser.add_argument("--interface", required=True)
    parser.add_argument("--file", required=True, type=Path, help="pcap; continued if it is there")
    parser.add_argument("--statistics", required=True, type=Path, help="JSON, renewed each second")
    parser.add_argument("--snaplen", type=int, default=LONGEST_FRAME, help="bytes of each packet")
    parser.add_argument(
        "--without-port", type=int, action="append", default=[], help="TCP port to leave out"
    )
    asked = parser.parse_args(arguments)
    if not 1 <= asked.snaplen <= LONGEST_FRAME:
        parser.error(f"--snaplen {asked.snaplen}: 1 to {LONGEST_FRAME} bytes are possible")
    if len(asked.without_port) > MOST_PORTS:
        parser.error(f"--without-port: at most {MOST_PORTS} of them")
    if not all(0 < port < 1 << 16 for port in asked.without_port):
        parser.error("--without-port: 1 to 65535 are possible")
    return asked


if __name__ == "__main__":
    sys.exit(main())
