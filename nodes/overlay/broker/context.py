"""One call of a broker: the time at which it happens, and the actions that it produces.

    on_message(peer, message, now) -> Context(now) -> parts append to context.actions -> context.actions go to the shell

A broker makes a context for each call and passes it to its parts. No part keeps one: the time, the actions, and the
cause of a topic method's actions come and go as arguments.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from nodes.overlay.base import Action, Drop, Note, Peer, Refuse, Send
from nodes.overlay.broker.pending import PendingAck
from nodes.overlay.topics import base as topics
from nodes.protocol.wire import Message


class Handler(Protocol):
    """Carries out one action of the topic method; `cause` as in `Context.perform`."""

    def __call__(
        self, context: "Context", action: topics.Action, cause: PendingAck | None, /
    ) -> None: ...


class Context:
    """The context of one call. `handle` is the broker's, and distributes the topic method's actions among its parts."""

    __slots__ = ("_handle", "actions", "now")

    def __init__(self, now: float, handle: Handler) -> None:
        self.now = now
        self.actions: list[Action] = []  # for the shell, in this order
        self._handle = handle

    def perform(self, actions: Iterable[topics.Action], cause: PendingAck | None = None) -> None:
        """Carry out the actions of the topic method at once.

        `cause`: the acknowledgement that waits for the copies that are sent. None: the broker finds it, because the
        publication has waited here.
        """
        for action in actions:
            self._handle(self, action, cause)

    def send(self, peer: Peer, message: Message) -> None:
        self.actions.append(Send(peer, message))

    def refuse(self, peer: Peer, reason: str) -> None:
        self.actions.append(Refuse(peer, reason))

    def drop(self, peer: Peer, reason: str) -> None:
        self.actions.append(Drop(peer, reason))

    def note(self, event: str, **details: Any) -> None:
        self.actions.append(Note(event, details))
