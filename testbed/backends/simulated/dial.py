"""Connecting to a broker in virtual time: TCP, HTTP, both HELLOs, and it is a link; what `nodes.runtime.dialing` is."""

from collections.abc import Callable
from typing import Any

from nodes.delivery.base import Scheduler
from nodes.runtime.config import BrokerPlace
from nodes.runtime.dialing import ANSWER_WITHIN_S
from nodes.runtime.greeting import FIXED_NONCES, Caller, Card
from nodes.runtime.link_method import LinkMethod
from testbed.backends.simulated.connection import REQUEST, Ending, Side, handshake_sizes
from testbed.backends.simulated.loop import SECOND, Timer

REFUSED = "[Errno 111] Connect call failed ({host!r}, {port})"  # as asyncio tells it
PATIENCE = round(ANSWER_WITHIN_S * SECOND)

Wait = Callable[[Callable[[], None]], None]  # calls it when it may go on
Connect = Callable[[str, int], Side]  # to the broker of this name; and the size of HTTP's answer


class Dial:
    """One try; `queue` is what waits for the link. `on_failed` is told why there is none.

    `before_proof` may hold back this side's proof, and with it the link.
    """

    def __init__(
        self,
        broker: BrokerPlace,
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
        self.answered = False  # the other side speaks: the connection will stand in a moment
        self._method = method
        self._before_proof = before_proof
        self._caller = Caller(Card.of(side.owner.config), broker.name, FIXED_NONCES[0])
        self._loop = side.owner.loop
        self._patience = Timer(self._loop, lambda: side.lose("timed out"))
        side.on_failed = lambda ending: self._fail(ending, on_failed)
        side.receive_with(self._take)
        side.endpoint.on_open = lambda: side.say(REQUEST, request_size)
        side.endpoint.on_refused = lambda: side.lose(
            REFUSED.format(host=broker.at.host, port=broker.at.port)
        )
        self._wait()
        side.endpoint.connect()

    def give_up(self, reason: str, code: int) -> None:
        """There will be no link by this way, and nobody is told so."""
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
            self.side.greet(self._caller.first())
            return
        self._patience.set(None)
        proof = self._caller.answer(item.data)
        self._before_proof(lambda: self._prove(proof))

    def _prove(self, proof: bytes) -> None:
        if not self.side.ended:
            self.side.greet(proof)
            self.side.open(self.broker.name, self._method, self.queue)

    def _fail(self, ending: Ending, on_failed: Callable[["Dial", Ending], None]) -> None:
        self._patience.set(None)
        on_failed(self, ending)
