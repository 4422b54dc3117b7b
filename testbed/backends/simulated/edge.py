"""A sensor or subscriber in virtual time: one link to the home broker, made again whenever it breaks."""

from collections.abc import Callable
from typing import Any

from nodes.delivery.base import Dropped
from nodes.overlay.edge import Edge
from nodes.overlay.promises import promises
from nodes.runtime import greeting
from nodes.runtime.backoff import Backoff
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import OPEN_TIMEOUT_S
from nodes.runtime.link_method import LinkMethod
from nodes.runtime.log import about_published
from nodes.runtime.publisher import Publication, Publisher
from nodes.wire import Message
from testbed.backends.simulated.connection import REQUEST, Connection, handshake_sizes
from testbed.backends.simulated.link import SimulatedLink
from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.backends.simulated.node import EPOCH_NS, SimulatedNode

Connect = Callable[["SimulatedEdge", int], Connection]  # and the size of HTTP's answer
Moment = tuple[int, Publication]  # when it is due


class SimulatedEdge(SimulatedNode):
    """The shell of a node at the edge."""

    core: Edge

    def __init__(
        self, loop: Loop, config: NodeConfig, service_ns: int, make_connection: Connect
    ) -> None:
        self._home = config.brokers[0]
        promised = promises(config.overlay.method, config.overlay.parameters)
        super().__init__(loop, config, Edge(config.station(), promised, config.topics), service_ns)
        self._method = LinkMethod(config.delivery)
        self._queue = self._method.scheduler()
        self._make_connection = make_connection
        self._connection: Connection | None = None
        self._backoff = Backoff(config.random("reconnect"))
        self._up_since = 0
        self._patience = Timer(loop, self._give_up)
        self._publisher = Publisher(config.number, 0)

    @property
    def ready(self) -> bool:
        return self.core.ready

    def go(self) -> None:
        self._connect()

    def connection_of(self, peer: str) -> Connection | None:
        return self._connection

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        if peer in self.links:
            return super().queue_message(peer, message, data)
        now = self.loop.seconds
        return self._queue.offer(data, message.priority, now, control=message.control)

    def play(self, moments: list[Moment]) -> None:
        """Publish at these moments, in the order of time."""
        if moments:
            due, _ = moments[0]
            self.loop.at(due, self._publish_next, (moments, 0))

    def link_down(self, link: SimulatedLink, reason: str) -> None:
        super().link_down(link, reason)
        self._backoff.on_link_lost((self.loop.now - self._up_since) / SECOND)
        self._connect_later()

    def _publish_next(self, plan: tuple[list[Moment], int]) -> None:
        moments, place = plan
        self._publish(moments[place][1])
        if place + 1 < len(moments):
            self.loop.at(moments[place + 1][0], self._publish_next, (moments, place + 1))

    def _publish(self, what: Publication) -> None:
        message = self._publisher.make(what, EPOCH_NS + self.loop.now)
        self.log.write("publish", **about_published(message, late_ns=0))
        self.published += 1
        self.later(self.perform, self.core.publish(message, self.loop.seconds))

    def _connect(self, _: None = None) -> None:
        at, labelled = self._home.at, self._method.needs.bits
        request_size, response_size = handshake_sizes(at.host, at.port, labelled)
        connection = self._connection = self._make_connection(self, response_size)
        side = connection.client

        def take(item: Any) -> None:
            if isinstance(item, str):
                side.greet()
                return
            greeting.check(item.data, self.config.lab, self._home.name)
            self._patience.set(None)
            self._up_since = self.loop.now
            side.open(self._home.name, self._method, self._queue)

        side.receive_with(take)
        side.endpoint.on_open = lambda: side.say(REQUEST, request_size)
        side.endpoint.on_vanished = lambda: side.end("the peer has vanished")
        self._patience.set(self.loop.now + round(OPEN_TIMEOUT_S * SECOND))
        side.endpoint.connect()

    def _give_up(self) -> None:
        """Nobody has answered for so long."""
        assert self._connection is not None
        self.log.write("unreachable", peer=self._home.name, reason="timed out")
        self._connection.client.end("timed out")
        self._connect_later()

    def _connect_later(self) -> None:
        wait = round(self._backoff.next_wait() * SECOND)
        self.loop.at(self.loop.now + wait, self._connect)
