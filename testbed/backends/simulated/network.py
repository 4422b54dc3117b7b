"""Tens of thousands of cores that know each other by number, each message a fixed time under way.

For overlays alone: no links, no bytes, no topology file. A node is made when it is first addressed, so a network of
100,000 costs nothing until messages reach them. For links, queues and TCP use `lab`.

    network = Network(Loop(), make_node, destination_of, delay_ns=50_000_000)
    network.call(17, lambda node, now: node.subscribe("alerts", now))
    network.loop.run(until)
"""

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any, Protocol

from testbed.backends.simulated.loop import SECOND, Loop, Timer


class Core(Protocol):
    """A node's part of an overlay; `now` is in seconds."""

    def on_message(self, sender: int, message: Any, now: float) -> Iterable[Any]:
        """A message came from the node of this number; actions."""

    def on_peer_lost(self, number: int, now: float) -> Iterable[Any]:
        """What was sent to that node did not arrive, it is gone; actions."""

    def next_deadline(self) -> float | None:
        """When `on_deadline` wants to be called; None: not at all."""

    def on_deadline(self, now: float) -> Iterable[Any]:
        """The time has come; actions."""


NodeCall = Callable[[Any, float], Iterable[Any]]  # core, now: actions


class Network:
    """Carries out the actions of cores: it sends an action with a destination, and passes all others to `notice`.

    `destination_of(action)` is the number of the node that gets `action.message`, or None if the action sends nothing.
    `make_node(number)` makes a core. `delay_ns` is the time under way, or a function (sender, receiver) of it.
    The sender to a node that is gone gets `on_peer_lost`, `lost_after_ns` after the message was due; None: never.
    `on_sent` is called with each message as it is sent.
    """

    def __init__(
        self,
        loop: Loop,
        make_node: Callable[[int], Core],
        destination_of: Callable[[Any], int | None],
        delay_ns: int | Callable[[int, int], int],
        notice: Callable[[int, Any, float], object] | None = None,
        lost_after_ns: int | None = None,
        on_sent: Callable[[Any], object] | None = None,
    ) -> None:
        self.loop = loop
        self.nodes: dict[int, Core] = {}
        self.sent = 0
        self.lost = 0  # to nodes that are gone
        self._make_node = make_node
        self._destination_of = destination_of
        self._delay_ns = delay_ns
        self._notice = notice
        self._lost_after_ns = lost_after_ns
        self._on_sent = on_sent
        self._timers: dict[int, Timer] = {}
        self._gone: set[int] = set()

    def node(self, number: int) -> Core:
        """The core of this number, made now if it has not been addressed yet."""
        if number not in self.nodes:
            self.nodes[number] = self._make_node(number)
        return self.nodes[number]

    def call(self, number: int, order: NodeCall) -> None:
        """Call a node from outside, now, and perform its actions."""
        if number not in self._gone:
            self._perform(number, order(self.node(number), self.loop.seconds))

    def kill(self, number: int) -> None:
        """Remove the node silently: messages in flight to it are lost."""
        self._gone.add(number)
        self.nodes.pop(number, None)
        if (timer := self._timers.pop(number, None)) is not None:
            timer.set(None)

    def revive(self, number: int) -> None:
        """Allow a new node of this number, without its old state."""
        self._gone.discard(number)

    def _perform(self, number: int, actions: Iterable[Any]) -> None:
        loop, delay = self.loop, self._delay_ns
        for action in actions:
            to = self._destination_of(action)
            if to is not None:
                self.sent += 1
                if self._on_sent is not None:
                    self._on_sent(action.message)
                took = delay if isinstance(delay, int) else delay(number, to)
                loop.at(loop.now + took, self._arrive, (number, to, action.message))
            elif self._notice is not None:
                self._notice(number, action, loop.seconds)
        if number in self.nodes:
            self._set_timer(number)

    def _arrive(self, under_way: tuple[int, int, Any]) -> None:
        sender, to, message = under_way
        if to not in self._gone:
            self._perform(to, self.node(to).on_message(sender, message, self.loop.seconds))
            return
        self.lost += 1
        if self._lost_after_ns is not None:
            self.loop.at(self.loop.now + self._lost_after_ns, self._report_lost, (sender, to))

    def _report_lost(self, link: tuple[int, int]) -> None:
        sender, gone = link
        if sender in self.nodes and gone in self._gone:
            self._perform(sender, self.nodes[sender].on_peer_lost(gone, self.loop.seconds))

    def _set_timer(self, number: int) -> None:
        deadline = self.nodes[number].next_deadline()
        if deadline is None and number not in self._timers:
            return
        if number not in self._timers:
            self._timers[number] = Timer(self.loop, lambda: self._on_deadline(number))
        # At least a nanosecond from now: a core that is asked a rounding error too early does not stop the time.
        later = None if deadline is None else max(ceil(deadline * SECOND), self.loop.now + 1)
        self._timers[number].set(later)

    def _on_deadline(self, number: int) -> None:
        if number in self.nodes:
            self._perform(number, self.nodes[number].on_deadline(self.loop.seconds))
