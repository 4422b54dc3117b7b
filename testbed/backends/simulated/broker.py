"""A broker in virtual time: it greets whoever comes, and its overlay core decides who gets what."""

from typing import Any

from nodes import overlay
from nodes.runtime import greeting
from nodes.runtime.config import NodeConfig
from nodes.runtime.link_method import LinkMethod
from testbed.backends.simulated.connection import RESPONSE, Connection, Side
from testbed.backends.simulated.loop import Loop
from testbed.backends.simulated.node import SimulatedNode


class SimulatedBroker(SimulatedNode):
    """The broker's shell."""

    def __init__(self, loop: Loop, config: NodeConfig, service_ns: int) -> None:
        make_core = overlay.METHODS[config.overlay.method]
        core = make_core(config.station(), config.overlay.parameters, config.random("overlay"))
        super().__init__(loop, config, core, service_ns)
        self._default = LinkMethod(config.delivery)
        self._methods = {peer: LinkMethod(chosen) for peer, chosen in config.deliveries.items()}
        self._connections: dict[str, Connection] = {}
        self._listens = False

    @property
    def ready(self) -> bool:
        return self._listens

    def go(self) -> None:
        self._listens = True
        self.note_readiness()

    def connection_of(self, peer: str) -> Connection | None:
        return self._connections.get(peer)

    def receive_guest(self, connection: Connection, response_size: int) -> None:
        """Somebody connects; the rest follows from what comes."""
        side = connection.server

        def take(item: Any) -> None:
            if isinstance(item, str):
                side.say(RESPONSE, response_size)
            else:
                self._greet(side, connection, greeting.check(item.data, self.config.lab))

        side.receive_with(take)
        side.endpoint.on_vanished = lambda: side.end("the peer has vanished")

    def _greet(self, side: Side, connection: Connection, peer: str) -> None:
        side.greet()
        if (older := self._connections.get(peer)) is not None:
            older.server.end("replaced by a newer connection")
        self._connections[peer] = connection
        method = self._methods.get(peer, self._default)
        side.open(peer, method, method.scheduler())
