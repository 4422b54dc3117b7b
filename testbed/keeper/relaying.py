"""The relay of a lab as one thing: its process is started when it is first needed, and anew after its death."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from testbed.keeper.capturing import state_of
from testbed.keeper.workers import Worker, WorkerError
from testbed.links.access import Access
from testbed.links.wiring import NODE_IF, ns_path


class Relaying:
    """The user-space links; they are gone when the process is."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None

    @property
    def state(self) -> str | None:
        """running, dead, or None if no link has needed it yet."""
        return state_of(self._worker)

    @property
    def serves(self) -> bool:
        """Whether its links carry anything."""
        return self.state == "running"

    def add(self, links: Sequence[Access]) -> None:
        """Both taps of each link, down; through a new process if there is none, or none any more."""
        if not self.serves:
            self.close()
            self._worker = self._make()
        orders = [
            {
                "link": link.spec.node,
                "node_ns": ns_path(link.ns_fd),
                "node_if": NODE_IF,
                "far_ns": ns_path(link.far_fd),
                "far_if": link.spec.far_if,
                "mtu": link.spec.mtu,
            }
            for link in links
        ]
        self._ask({"do": "add", "links": orders})

    def shape(self, links: Sequence[dict[str, Any]], seed: int | None) -> None:
        """Shapes as the keeper was told them; WorkerError if the links have gone with their process."""
        shapes = [{"link": link["node"], "up": link["up"], "down": link["down"]} for link in links]
        self._ask({"do": "shape", "links": shapes, "seed": seed})

    def remove(self, links: Sequence[Access]) -> None:
        """Taps go; those of a dead relay are left to whoever removes interfaces."""
        if links and self.serves:
            with suppress(WorkerError):
                self._ask({"do": "remove", "links": [link.spec.node for link in links]})

    def counters(self, links: bool, restart: bool) -> dict[str, Any]:
        """How it and its links fare, None if there is none, or none any more; then its lateness may start anew."""
        if self._worker is None or not self.serves:
            return {"relay": None, "links": None}
        found = self._worker.ask({"do": "counters", "links": links, "restart": restart})
        return {"relay": found["counters"], "links": found.get("links")}

    def reap(self) -> None:
        """Take note of its end."""
        state_of(self._worker)

    def close(self) -> None:
        """End it."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise WorkerError("there is no relay, and so no link")
        return self._worker.ask(question)
