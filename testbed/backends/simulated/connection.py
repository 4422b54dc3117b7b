"""A WebSocket connection between an edge node and its broker, from the first packet on: TCP, HTTP, HELLO, link.

The sizes of HTTP's messages are those that the library itself makes; only their lengths matter here.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from websockets.client import ClientProtocol
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from nodes.delivery.base import Chunk, Scheduler
from nodes.runtime import greeting, labelling
from nodes.runtime.config import NodeConfig
from nodes.runtime.link_method import LinkMethod
from nodes.wire import Message
from testbed.backends.simulated.endpoint import Endpoint
from testbed.backends.simulated.link import SimulatedLink, write
from testbed.backends.simulated.loop import Loop
from testbed.backends.simulated.packets import Flow

REQUEST, RESPONSE = "request", "response"


class Owner(Protocol):
    """The node at one side."""

    loop: Loop
    config: NodeConfig
    service_ns: int

    def later(self, call: Callable[[Any], object], argument: Any) -> None:
        """The processor does this when it has done all before."""

    def handle(self, link: SimulatedLink, message: Message, arrived: int) -> None:
        """A message came in."""

    def link_up(self, link: SimulatedLink) -> None:
        """Both sides have said HELLO."""

    def link_down(self, link: SimulatedLink, reason: str) -> None:
        """The link is gone."""


class Side:
    """What one node has of the connection."""

    def __init__(self, owner: Owner, endpoint: Endpoint, outgoing: Flow) -> None:
        self.owner = owner
        self.endpoint = endpoint
        self.link: SimulatedLink | None = None
        self.ended = False
        self._outgoing = outgoing
        self._arrived = 0

    def say(self, item: str, size: int) -> None:
        """A message of HTTP."""
        self._outgoing.ledger.note_handshake(size)
        self.endpoint.write(size, item)

    def greet(self) -> None:
        """HELLO."""
        config = self.owner.config
        chunk = Chunk(greeting.hello(config.name, config.number, config.lab))
        write(self.endpoint, self._outgoing, chunk)

    def open(self, peer: str, method: LinkMethod, scheduler: Scheduler) -> None:
        """From now on it is a link."""
        self.link = SimulatedLink(
            self.owner.loop,
            peer,
            self.endpoint,
            self._outgoing,
            method,
            scheduler,
            lambda link, message: self.owner.handle(link, message, self._arrived),
            self.owner.service_ns,
        )
        self.owner.link_up(self.link)

    def receive_with(self, take: Callable[[Any], None]) -> None:
        """What comes is taken by this, when the processor has time."""

        def on_item(item: Any) -> None:
            self.owner.later(work, (item, self.owner.loop.now))

        def work(come: tuple[Any, int]) -> None:
            item, self._arrived = come
            if self.ended:
                return
            if self.link is not None:
                self.link.on_chunk(item)
            else:
                take(item)

        self.endpoint.receiver.on_item = on_item

    def end(self, reason: str) -> None:
        """The connection is gone for this side."""
        if not self.ended:
            self.ended = True
            self.endpoint.stop()
            if self.link is not None:
                self.owner.link_down(self.link, reason)


class Connection:
    """Both sides."""

    def __init__(self, client: Side, server: Side) -> None:
        self.client = client
        self.server = server

    def break_off(self, reason: str) -> None:
        """One side ends it, and the other hears of it."""
        self.server.end(reason)
        self.client.end(reason)


@lru_cache
def handshake_sizes(host: str, port: int, labelled: bool) -> tuple[int, int]:
    """Bytes of the request and of the answer."""
    offered, accepted = [labelling.Offer()] if labelled else None, [labelling.Acceptance()]
    request = ClientProtocol(parse_uri(f"ws://{host}:{port}/"), extensions=offered).connect()
    response = ServerProtocol(extensions=accepted).accept(request)
    return len(request.serialize()), len(response.serialize())
