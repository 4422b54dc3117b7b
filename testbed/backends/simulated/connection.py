"""A WebSocket connection between a node and a broker, from the first packet to the last: TCP, HTTP, HELLO, link, close.

The sizes of HTTP's messages are those that the library itself makes; only their lengths matter here.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from websockets.client import ClientProtocol
from websockets.frames import Close
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from nodes.delivery.base import Chunk, Scheduler
from nodes.protocol.wire import Message
from nodes.runtime import label_extension
from nodes.runtime.config import BrokerAddress, NodeConfig
from nodes.runtime.connection import GOING_AWAY, NORMAL, NOT_USED, ORDERLY_CLOSE_S
from nodes.runtime.dialing import ANSWER_WITHIN_S, OTHER_WAY
from nodes.runtime.handshake import FIXED_NONCES, Caller, Identity
from nodes.runtime.link import LinkMethod
from testbed.backends.simulated.link import SimulatedLink, write
from testbed.backends.simulated.link_layer import Flow
from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.backends.simulated.stream_contents import frame_head
from testbed.backends.simulated.tcp import END, Endpoint

REQUEST, RESPONSE = "request", "response"
ARRIVAL_CHECK_INTERVAL = SECOND // 100


class CloseFrame(NamedTuple):
    """A WebSocket's close frame."""

    code: int
    reason: str

    @property
    def size(self) -> int:
        """Its bytes, without the frame's head."""
        return 2 + len(self.reason.encode())

    def __str__(self) -> str:
        close = Close(self.code, self.reason)
        return f"received {close}; then sent {close}"


class Ending(NamedTuple):
    """Why a connection is over.

    `orderly`: it was closed because it was not used, and all that had left has arrived; `sent_away`: the peer is about
    to stop; `silent`: nothing came from it; `other_way`: the peer is calling itself.
    """

    reason: str
    orderly: bool = False
    sent_away: bool = False
    silent: bool = False
    other_way: bool = False


class Owner(Protocol):
    """The node at one side."""

    loop: Loop
    config: NodeConfig
    service_ns: int
    sides: "dict[Side, None]"  # its connections

    def later(self, call: Callable[[Any], object], argument: Any) -> None:
        """Call this when the processor has finished what is queued before."""

    def handle(self, link: SimulatedLink, message: Message, arrived: int) -> None:
        """A message came in."""

    def link_up(self, link: SimulatedLink) -> None:
        """The handshake is complete: the link is up."""

    def link_down(self, link: SimulatedLink, ending: Ending) -> None:
        """The link is gone."""


class Side:
    """One node's side of the connection."""

    def __init__(self, owner: Owner, endpoint: Endpoint, outgoing: Flow) -> None:
        self.owner = owner
        self.endpoint = endpoint
        self.link: SimulatedLink | None = None
        self.ended = False
        self._left = False  # the peer is closing it in order
        self.on_failed: Callable[[Ending], None] = lambda ending: None  # before it is a link
        self._outgoing = outgoing
        self._arrived = 0
        endpoint.on_vanished = lambda: self.lose("the peer has vanished")
        owner.sides[self] = None

    def send_http(self, item: str, size: int) -> None:
        """Send an HTTP message."""
        self._outgoing.ledger.note_protocol(self.endpoint.sender.written, size)
        self.endpoint.write(size, item)

    def send_hello(self, hello: bytes) -> None:
        """Send HELLO."""
        write(self.endpoint, self._outgoing, Chunk(hello))

    def open(self, peer: str, method: LinkMethod, scheduler: Scheduler) -> None:
        """Make a link of the connection."""
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
        """Pass what comes to `take`, when the processor has time."""

        def on_item(item: Any) -> None:
            self.owner.later(work, (item, self.owner.loop.now))

        def work(come: tuple[Any, int]) -> None:
            item, self._arrived = come
            if self.ended:
                return
            if isinstance(item, CloseFrame):
                self._on_close_frame(item)
            elif item is END:
                self.endpoint.finish()
                self._over(Ending("no close frame received or sent"))
            elif self.link is not None:
                self.link.on_chunk(item)
            else:
                take(item)

        self.endpoint.receiver.on_item = on_item

    def close(self, reason: str, code: int) -> None:
        """End the connection; the peer learns of it after what was written before has arrived."""
        if not self.ended:
            if not self._left:
                self._send_close(CloseFrame(code, reason))
            self.endpoint.finish()
            self._over(Ending(reason))

    def part(self) -> None:
        """Close it in order, since it is not used: what the peer sends until it learns of that is still taken."""
        if self.ended or self.link is None or self.link.closing_orderly:
            return
        self.link.closing_orderly = True
        self._send_close(CloseFrame(NORMAL, NOT_USED))
        self._give_up_without_progress(lambda: self.endpoint.receiver.up_to)

    def cut(self, reason: str) -> None:
        """End it at once, without a close frame: the peer does not answer."""
        if not self.ended:
            self.endpoint.finish()
            self._over(Ending(reason, silent=True))

    def lose(self, reason: str) -> None:
        """The kernel has given up, or this side has: nothing more is sent."""
        if not self.ended:
            self._outgoing.items.clear()
            self.endpoint.stop()
            self._over(Ending(reason))

    def crash(self) -> None:
        """The node's process is gone and gets no more events; its kernel ends the stream."""
        self.ended = True
        if self.link is not None:
            self.link.end()
        self.endpoint.finish()

    def _on_close_frame(self, close_frame: CloseFrame) -> None:
        link = self.link
        closing_orderly = link is not None and link.closing_orderly
        if not closing_orderly:
            self._send_close(close_frame)
        self.endpoint.finish()
        if link is not None and not closing_orderly and close_frame == (NORMAL, NOT_USED):
            link.stop_sending()
            self._left = True
            self._end_when_all_has_arrived(Ending(str(close_frame), orderly=True))
            return
        self._over(
            Ending(
                NOT_USED if closing_orderly else str(close_frame),
                orderly=closing_orderly,
                sent_away=close_frame.code == GOING_AWAY,
                other_way=close_frame.reason == OTHER_WAY,
            )
        )

    def _end_when_all_has_arrived(self, ending: Ending) -> None:
        def check(_: None = None) -> None:
            if self.ended:
                return
            if self.endpoint.sender.unacknowledged:
                self.owner.loop.at(self.owner.loop.now + ARRIVAL_CHECK_INTERVAL, check)
            else:
                self._over(ending)

        self._give_up_without_progress(lambda: self.endpoint.sender.unacknowledged)
        check()

    def _give_up_without_progress(self, state: Callable[[], int]) -> None:
        before = state()

        def check(_: None) -> None:
            if state() == before:
                self.lose(NOT_USED)
            elif not self.ended:
                self._give_up_without_progress(state)

        patience = round(ORDERLY_CLOSE_S * SECOND)
        self.owner.loop.at(self.owner.loop.now + patience, check)

    def _send_close(self, close_frame: CloseFrame) -> None:
        size = close_frame.size + frame_head(close_frame.size, masked=self.endpoint.client)
        self._outgoing.ledger.note_protocol(self.endpoint.sender.written, size)
        self.endpoint.write(size, close_frame)

    def _over(self, ending: Ending) -> None:
        self.ended = True
        self.owner.sides.pop(self, None)
        if self.link is not None:
            self.owner.link_down(self.link, ending)
        else:
            self.on_failed(ending)


@lru_cache
def handshake_sizes(host: str, port: int, labelled: bool) -> tuple[int, int]:
    """Sizes of the HTTP request and response."""
    offered, accepted = (
        [label_extension.Offer()] if labelled else None,
        [label_extension.Acceptance()],
    )
    request = ClientProtocol(parse_uri(f"ws://{host}:{port}/"), extensions=offered).connect()
    response = ServerProtocol(extensions=accepted).accept(request)
    return len(request.serialize()), len(response.serialize())


# Connecting to a broker: TCP, HTTP, both HELLOs, then a link; as `nodes.runtime.dialing` does.


REFUSED = "[Errno 111] Connect call failed ({host!r}, {port})"  # as asyncio words it
PATIENCE = round(ANSWER_WITHIN_S * SECOND)

Wait = Callable[[Callable[[], None]], None]  # calls it when it may go on
Connect = Callable[[str, int], Side]  # to the broker of this name; and the size of HTTP's answer


class Dial:
    """One attempt to connect; `queue` holds messages for the link. `on_failed` gets the reason if there is none.

    `before_proof` may hold back this side's proof, and with it the link.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        method: LinkMethod,
        queue: Scheduler,
        connect: Connect,
        on_failed: Callable[["Dial", Ending], None],
        before_proof: Wait = lambda go_on: go_on(),
    ) -> None:
        request_size, response_size = handshake_sizes(
            broker.at.host, broker.at.port, method.needs.bits
        )
        side = connect(broker.name, response_size)
        self.broker = broker
        self.queue = queue
        self.side = side
        self.answered = False  # the other side has answered: the link will be up in a moment
        self._method = method
        self._before_proof = before_proof
        self._caller = Caller(Identity.of(side.owner.config), broker.name, FIXED_NONCES[0])
        self._loop = side.owner.loop
        self._patience = Timer(self._loop, lambda: side.lose("timed out"))
        side.on_failed = lambda ending: self._fail(ending, on_failed)
        side.receive_with(self._take)
        side.endpoint.on_open = lambda: side.send_http(REQUEST, request_size)
        side.endpoint.on_refused = lambda: side.lose(
            REFUSED.format(host=broker.at.host, port=broker.at.port)
        )
        self._wait()
        side.endpoint.connect()

    def give_up(self, reason: str, code: int) -> None:
        """Give up without a report."""
        self._patience.set(None)
        self.side.on_failed = lambda ending: None
        self.side.close(reason, code)

    def abandon(self) -> None:
        """The node is gone."""
        self._patience.set(None)

    def _wait(self) -> None:
        self._patience.set(self._loop.now + PATIENCE)

    def _take(self, item: Any) -> None:
        self.answered = True
        if isinstance(item, str):
            self._wait()
            self.side.send_hello(self._caller.first())
            return
        self._patience.set(None)
        proof = self._caller.answer(item.data)
        self._before_proof(lambda: self._prove(proof))

    def _prove(self, proof: bytes) -> None:
        if not self.side.ended:
            self.side.send_hello(proof)
            self.side.open(self.broker.name, self._method, self.queue)

    def _fail(self, ending: Ending, on_failed: Callable[["Dial", Ending], None]) -> None:
        self._patience.set(None)
        on_failed(self, ending)
