"""The capture process of a lab: it captures all links and writes one file a link, until a stop request.

    {"do": "add", "links": [{"link", "path", "snaplen", "up": {"ns", "ifname"}, "down": {"ns", "ifname"}}]}
    {"do": "stats"}     packets, bytes, dropped per link so far
    {"do": "stop"}      drains, completes the files, answers with the counts, ends

One JSON object a line on standard input, one answer a line on standard output. The end of standard input and SIGTERM
are a stop without an answer. One thread: the kernel stamps and queues the packets, so nothing is gained by hurrying.
"""

import json
import os
import select
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.capture.link import CapturedLink
from testbed.capture.pcap import PcapFile
from testbed.capture.sockets import LONGEST_FRAME, CaptureSocket, termination
from testbed.errors import TestbedError
from testbed.limits import raise_open_files
from testbed.links.namespaces import inside
from testbed.monitor.shared_counters import open_shared_counters

RELEASE_INTERVAL_S = 0.08  # a record is in its file after at most two of these
REPORT_INTERVAL_S = 1.0  # the monitor learns of lost packets after at most so long
NAP_S = 0.005  # after a quiet round: many packets are then taken at once instead of one by one
CLOSERS = 32  # threads
_INPUT = 0
_OUTPUT = 1


class CaptureError(TestbedError):
    """A link cannot be captured."""


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """An interface in a network namespace."""

    ns: str
    ifname: str


@dataclass(frozen=True, slots=True)
class CaptureOrder:
    """A link to be captured."""

    link: str
    path: Path
    snaplen: int
    ends: tuple[LinkEnd, LinkEnd]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "CaptureOrder":
        try:
            ends = (LinkEnd(**data["up"]), LinkEnd(**data["down"]))
            snaplen = min(int(data["snaplen"]), LONGEST_FRAME)
            order = cls(str(data["link"]), Path(data["path"]), snaplen, ends)
        except (KeyError, TypeError, ValueError) as error:
            raise CaptureError(f"not an order for a link: {error!r}") from error
        if order.snaplen <= 0:
            raise CaptureError(f"{order.link}: snaplen {order.snaplen}; at least 1 byte is needed")
        return order


class Worker:
    """The links, their sockets, and the loop that serves them."""

    def __init__(self) -> None:
        self._links: dict[str, CapturedLink] = {}
        self._sockets: dict[int, tuple[CapturedLink, CaptureSocket]] = {}  # by descriptor
        self._due: set[CapturedLink] = set()  # links with records not yet in their files
        self._counters = open_shared_counters()
        self._unreported_since: float | None = None  # packets came; some may have been lost
        self._poll = select.epoll()
        self._buffer = memoryview(bytearray(LONGEST_FRAME))
        self._partial_line = b""
        self._finished = False

    def run(self) -> None:
        """Serve until a stop request."""
        with termination() as wakeup:
            self._poll.register(_INPUT, select.EPOLLIN)
            self._poll.register(wakeup, select.EPOLLIN)
            next_release = 0.0
            while not self._finished:
                pause = None if self._unreported_since is None else REPORT_INTERVAL_S
                if self._due:
                    pause = max(0.0, next_release - time.monotonic())
                behind = False
                received = False
                for descriptor, mask in self._poll.poll(pause):
                    if descriptor == _INPUT:
                        self._read_input()
                    elif descriptor == wakeup:
                        self._finish()
                    elif descriptor in self._sockets:
                        received = True
                        behind |= self._receive(descriptor, mask)
                if self._due and time.monotonic() >= next_release:
                    self._release()
                    next_release = time.monotonic() + RELEASE_INTERVAL_S
                self._update_shared_counters(received)
                if received and not behind and not self._finished:
                    time.sleep(NAP_S)

    def _update_shared_counters(self, received: bool) -> None:
        """Publish how many packets were lost so far; only while packets come, as an idle link loses none."""
        now = time.monotonic()
        if received and self._unreported_since is None:
            self._unreported_since = now
        if self._unreported_since is not None and now >= self._unreported_since + REPORT_INTERVAL_S:
            self._unreported_since = None
            self._counters.capture_dropped = self._dropped()

    def _dropped(self) -> int:
        return sum(link.dropped() for link in self._links.values())

    def _receive(self, descriptor: int, mask: int) -> bool:
        link, sock = self._sockets[descriptor]
        more = link.take(sock, self._buffer)
        if not link.idle:
            self._due.add(link)
        if mask & select.EPOLLERR and not more and sock.gone:
            # An open socket would keep the namespace of a removed node alive.
            self._close_socket(link, sock)
        return more

    def _release(self) -> None:
        for link in self._due:
            link.release()
        self._due = {link for link in self._due if not link.idle}

    def _read_input(self) -> None:
        data = os.read(_INPUT, 1 << 20)
        if not data:
            self._finish()
            return
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        for line in lines:
            if self._finished:
                return
            answer = json.dumps(self._answer(line)).encode() + b"\n"
            try:
                while answer:
                    answer = answer[os.write(_OUTPUT, answer) :]
            except BrokenPipeError:
                self._finish()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            question = json.loads(line)
            match question:
                case {"do": "add", "links": list(links)}:
                    self._add([CaptureOrder.from_json(link) for link in links])
                    return {"ok": True}
                case {"do": "stats"}:
                    return self._statistics()
                case {"do": "stop"}:
                    self._finish()
                    return self._statistics()
        except ValueError as error:
            return {"ok": False, "error": f"not a line of JSON: {error}"}
        except TestbedError as error:
            return {"ok": False, "error": error.message}
        return {"ok": False, "error": f"unknown question {line.decode(errors='replace')!r}"}

    def _statistics(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "ok": True,
            "links": {name: link.counts() for name, link in self._links.items()},
        }
        errors = [link.file.error for link in self._links.values() if link.file.error]
        if errors:
            more = f" ({len(errors) - 1} more files likewise.)" if len(errors) > 1 else ""
            answer["error"] = errors[0] + more
        return answer

    def _add(self, orders: list[CaptureOrder]) -> None:
        """Listen on all of these links, or on none. A link that was captured before goes on in the same file."""
        opened: list[tuple[CaptureOrder, list[CaptureSocket]]] = []
        files: dict[str, PcapFile] = {}
        try:
            for order in orders:
                sockets: list[CaptureSocket] = []
                opened.append((order, sockets))
                for end in order.ends:
                    sockets.append(_open_socket(order.link, end))
                if order.link not in self._links:
                    files[order.link] = _open_file(order)
        except TestbedError:
            for _, sockets in opened:
                for sock in sockets:
                    sock.close()
            for file in files.values():
                file.close()
            raise
        for order, sockets in opened:
            link = self._links.get(order.link)
            if link is None:
                link = CapturedLink(order.link, files[order.link], order.snaplen)
                self._links[order.link] = link
            for old in list(link.sockets):
                link.drain(old, self._buffer, time.time_ns())
                self._close_socket(link, old)
                self._due.add(link)
            link.cut_at(order.snaplen)
            for sock in sockets:
                link.sockets.append(sock)
                self._sockets[sock.fileno()] = (link, sock)
                self._poll.register(sock.fileno(), select.EPOLLIN)

    def _close_socket(self, link: CapturedLink, sock: CaptureSocket) -> None:
        self._poll.unregister(sock.fileno())
        del self._sockets[sock.fileno()]
        link.close_socket(sock)

    def close(self) -> None:
        """Close the sockets. The kernel takes 10 ms and more for each, but for many at once no longer."""
        with ThreadPoolExecutor(CLOSERS) as closers:
            for link in self._links.values():
                for sock in link.sockets:
                    closers.submit(sock.close)

    def _finish(self) -> None:
        """Drain everything and complete the files, so that the answer need not wait for the sockets to close."""
        if self._finished:
            return
        now = time.time_ns()
        for link in self._links.values():
            for sock in link.sockets:
                link.drain(sock, self._buffer, now)
            link.finish()
        self._counters.capture_dropped = self._dropped()
        self._finished = True


def _open_socket(link: str, end: LinkEnd) -> CaptureSocket:
    try:
        namespace = os.open(end.ns, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with inside(namespace):
                return CaptureSocket(end.ifname)
        finally:
            os.close(namespace)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CaptureError(
            f"{link}: cannot listen on {end.ifname} of {end.ns}: {reason}"
        ) from error


def _open_file(order: CaptureOrder) -> PcapFile:
    try:
        order.path.parent.mkdir(parents=True, exist_ok=True)
        return PcapFile(order.path, order.snaplen)
    except OSError as error:
        raise CaptureError(f"{order.link}: cannot write {order.path}: {error.strerror}") from error


def main() -> int:
    """Run the process."""
    raise_open_files()
    worker = Worker()
    worker.run()
    worker.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
