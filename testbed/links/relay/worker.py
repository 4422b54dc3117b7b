"""`python -m testbed.links.relay.worker`: the relay process. Questions as JSON lines on stdin, answers on stdout.

| question | answer |
| --- | --- |
| `{"do": "add", "links": [{"link", "node_ns", "node_if", "far_ns", "far_if", "mtu"}]}` | taps made, down |
| `{"do": "shape", "links": [{"link", "up", "down"}], "seed"}` | |
| `{"do": "remove", "links": [name...]}` | |
| `{"do": "counters", "links": true, "restart": false}` | `counters`, `links` if wanted; then lateness may start anew |
| `{"do": "stop"}` | it ends |

`node_ns` and `far_ns` are paths of namespaces. It runs in the core's and ends when stdin does.
"""

import gc
import json
import os
import signal
import sys
from typing import Any

from testbed.errors import TestbedError
from testbed.links.changes import DirectionState
from testbed.links.namespaces import inside
from testbed.links.relay.switch import Counters, Switch
from testbed.links.tap import close_tap, open_tap
from testbed.monitor.shared_counters import open_shared_counters
from testbed.syscalls import disable_timer_slack, use_realtime_priority

_STDIN, _STDOUT = 0, 1


class Worker:
    """Answers questions while the switch works."""

    def __init__(self) -> None:
        shared = open_shared_counters()
        shared.begin_relay()
        self._switch = Switch(Counters(shared))
        self._buffer = b""
        self._ended = False
        os.set_blocking(_STDIN, False)
        self._switch.watch(_STDIN, self._read_requests)

    def run(self) -> None:
        """Run until a stop request or the end of standard input."""
        while not self._ended:
            self._switch.turn()

    def _read_requests(self) -> None:
        data = os.read(_STDIN, 1 << 16)
        if not data:
            self._ended = True
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            try:
                answer = {"ok": True, **self._answer(json.loads(line))}
            except (TestbedError, OSError, KeyError, ValueError, TypeError) as error:
                answer = {"ok": False, "error": _sentence(error)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        match question["do"]:
            case "add":
                self._add(question["links"])
            case "shape":
                states = {
                    link["link"]: (
                        DirectionState.from_json(link["up"]),
                        DirectionState.from_json(link["down"]),
                    )
                    for link in question["links"]
                }
                self._switch.shape(states, question.get("seed"))
            case "remove":
                for name in question["links"]:
                    self._switch.remove(name)
            case "counters":
                return self._count(bool(question.get("links")), bool(question.get("restart")))
            case "stop":
                self._ended = True
            case unknown:
                raise ValueError(f"unknown question {unknown!r}")
        return {}

    def _count(self, links: bool, restart: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"counters": self._switch.counters.report()}
        if links:
            found["links"] = self._switch.tallies()
        if restart:
            self._switch.counters.restart_lateness()
        return found

    def _add(self, links: list[dict[str, Any]]) -> None:
        made: list[str] = []
        try:
            for link in links:
                node = _tap(link["node_ns"], link["node_if"])
                try:
                    far = _tap(link["far_ns"], link["far_if"])
                except BaseException:
                    close_tap(node)
                    raise
                self._switch.add(link["link"], node, far, link["mtu"])
                made.append(link["link"])
        except BaseException:
            for name in made:
                self._switch.remove(name)
            raise


def _tap(ns_path: str, ifname: str) -> int:
    """A new tap in the namespace of this path."""
    namespace = os.open(ns_path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with inside(namespace):
            return open_tap(ifname)
    finally:
        os.close(namespace)


def _sentence(error: Exception) -> str:
    if isinstance(error, TestbedError) and error.hint:
        return f"{error.message}; {error.hint}"
    if isinstance(error, KeyError):
        return f"unknown link or missing field {error}"
    return str(error)


def main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    disable_timer_slack()
    use_realtime_priority()  # on a busy machine, a late relay would distort what is measured
    gc.disable()  # frames are freed by reference counting; a collection would only add lateness
    Worker().run()


if __name__ == "__main__":
    main()
