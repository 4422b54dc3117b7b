"""`python -m testbed.links.relay.worker`: the relay process. Questions as JSON lines on stdin, answers on stdout.

| question | answer |
| --- | --- |
| `{"do": "add", "links": [{"link", "ns", "node_if", "core_if", "mtu"}]}` | taps made, down; `ns` is a path |
| `{"do": "shape", "links": [{"link", "up", "down"}], "seed"}` | |
| `{"do": "remove", "links": [name...]}` | |
| `{"do": "counters"}` | `counters` |
| `{"do": "stop"}` | it ends |

It runs in the core namespace and ends when stdin does.
"""

import gc
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from testbed.errors import TestbedError
from testbed.links.relay.switch import Switch
from testbed.links.system import wake_precisely
from testbed.topology.model import Shape

_STDIN, _STDOUT = 0, 1


class Worker:
    """Answers questions while the switch works."""

    def __init__(self) -> None:
        self._switch = Switch()
        self._buffer = b""
        self._ended = False
        os.set_blocking(_STDIN, False)
        self._switch.watch(_STDIN, self._hear)

    def run(self) -> None:
        """Until told to stop, or nobody is left who could."""
        while not self._ended:
            self._switch.turn()

    def _hear(self) -> None:
        heard = os.read(_STDIN, 1 << 16)
        if not heard:
            self._ended = True
        *lines, self._buffer = (self._buffer + heard).split(b"\n")
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
                for link in question["links"]:
                    self._switch.shape(
                        link["link"],
                        Shape(**link["up"]),
                        Shape(**link["down"]),
                        question.get("seed"),
                    )
            case "remove":
                for name in question["links"]:
                    self._switch.remove(name)
            case "counters":
                return {"counters": self._switch.counters.report()}
            case "stop":
                self._ended = True
            case unknown:
                raise ValueError(f"unknown question {unknown!r}")
        return {}

    def _add(self, links: list[dict[str, Any]]) -> None:
        made: list[str] = []
        try:
            for link in links:
                ns = os.open(link["ns"], os.O_RDONLY | os.O_CLOEXEC)
                try:
                    self._switch.add(
                        link["link"], ns, link["node_if"], link["core_if"], link["mtu"]
                    )
                finally:
                    os.close(ns)
                made.append(link["link"])
        except BaseException:
            for name in made:
                self._switch.remove(name)
            raise


def _sentence(error: Exception) -> str:
    if isinstance(error, TestbedError) and error.hint:
        return f"{error.message}; {error.hint}"
    if isinstance(error, KeyError):
        return f"unknown link or missing field {error}"
    return str(error)


def _come_first() -> None:
    """Real-time priority: on a busy machine, a late relay would distort what is measured.

    The kernel keeps 5 % of the time for everybody else. Without root the priority stays as it is.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake_precisely()
    _come_first()
    gc.disable()  # frames are freed by reference counting; a collection would only add lateness
    Worker().run()


if __name__ == "__main__":
    main()
