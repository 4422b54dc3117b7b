"""`python -m testbed.keeper.background_traffic`: background traffic, datagrams at a steady rate between namespaces.

    {"do": "begin", "number", "rate_bps", "size", "flows": [{"ns", "to_ns", "target"}]}
    {"do": "end", "number"}     `sent`: how many datagrams, `unsent`: how many more were due

One JSON object a line on standard input, one answer a line on standard output; the end of standard input ends it, too.
Each flow has a socket in both namespaces. The receiver's socket is never read: it only keeps the kernel from answering
that the port is closed, and stays open for datagrams that are still under way when the load has ended.
"""

import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from typing import Any

from testbed.links.namespaces import inside
from testbed.syscalls import disable_timer_slack

DISCARD = 9  # the discard port, RFC 863
HEADERS = 14 + 20 + 8  # Ethernet, IPv4, UDP
_INPUT, _OUTPUT = 0, 1
_ROUND_S = 0.005  # it sends for so long before it reads its input again
_BEHIND_S = 1.0  # a flow skips datagrams that are later than this


class Flow:
    """Datagrams from one node to another."""

    def __init__(self, order: dict[str, Any], size: int, gap_s: float) -> None:
        self._target = (order["target"], DISCARD)
        self._payload = bytes(size)
        self._gap_s = gap_s
        self.due_s = time.monotonic()
        self.sent = 0
        self.left = 0
        self._sender = _socket(order["ns"])

    def send(self, now_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Send the datagrams that are due, within one round; skip those that are long overdue."""
        if (late_s := now_s - _BEHIND_S - self.due_s) > 0:
            lost = ceil(late_s / self._gap_s)
            self.left += lost
            self.due_s += lost * self._gap_s
        while self.due_s <= now_s and clock() < now_s + _ROUND_S:
            try:
                self._sender.sendto(self._payload, self._target)
                self.sent += 1
            except OSError:
                self.left += (
                    1  # a full queue, or a link that is down: the datagram is lost, as on any link
                )
            self.due_s += self._gap_s

    def close(self) -> None:
        self._sender.close()


class Loads:
    """All flows, by the number of their load."""

    def __init__(self) -> None:
        self._flows: dict[int, list[Flow]] = {}
        self._sinks: dict[str, socket.socket] = {}  # by the receiver's address

    @property
    def wait_s(self) -> float | None:
        """Seconds until the next datagram; None if there is no flow."""
        due = [flow.due_s for flows in self._flows.values() for flow in flows]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def send(self) -> None:
        """Send the datagrams that are due, the latest first, within one round: a question may be waiting."""
        now_s = time.monotonic()
        flows = [flow for flows in self._flows.values() for flow in flows]
        for flow in sorted(flows, key=lambda each: each.due_s):
            flow.send(now_s)

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Begin or end a load."""
        match question:
            case {"do": "begin", "number": number, "rate_bps": rate, "size": size, "flows": flows}:
                gap_s = (size + HEADERS) * 8 / rate
                for order in flows:
                    self._open_sink(order["to_ns"], order["target"])
                self._flows[number] = [Flow(order, size, gap_s) for order in flows]
                return {"ok": True}
            case {"do": "end", "number": number}:
                ended = self._flows.pop(number, [])
                for flow in ended:
                    flow.close()
                sent, left = (sum(getattr(flow, key) for flow in ended) for key in ("sent", "left"))
                return {"ok": True, "sent": sent, "unsent": left}
        return {"ok": False, "error": f"unknown question {question!r}"}

    def _open_sink(self, namespace: str, address: str) -> None:
        if address not in self._sinks:
            self._sinks[address] = sink = _socket(namespace)
            # If a program of the user has the port, that program receives the datagrams.
            with suppress(OSError):
                sink.bind((address, DISCARD))


def _socket(namespace: str) -> socket.socket:
    ns_fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with inside(ns_fd):
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    finally:
        os.close(ns_fd)
    made.setblocking(False)
    return made


def main() -> int:
    """Serve until the end of standard input."""
    disable_timer_slack()
    loads, typed = Loads(), b""
    while True:
        ready, _, _ = select.select([_INPUT], [], [], loads.wait_s)
        loads.send()
        if not ready:
            continue
        if not (received := os.read(_INPUT, 1 << 20)):
            return 0
        *lines, typed = (typed + received).split(b"\n")
        for line in lines:
            try:
                answer = loads.answer(json.loads(line))
            except (OSError, ValueError) as error:
                answer = {"ok": False, "error": str(error)}
            os.write(_OUTPUT, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
