"""A broker in virtual time: it accepts connections, and calls other brokers when it has something to send to them.

Its overlay core decides which peer gets which message.
"""

from typing import Any

from nodes import overlay
from nodes.delivery.base import Dropped
from nodes.protocol.wire import Message
from nodes.runtime.broker import STOPS
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import GOING_AWAY, NORMAL, POLICY_VIOLATION
from nodes.runtime.dialing import OTHER_WAY
from nodes.runtime.handshake import FIXED_NONCES, Host, Identity
from nodes.runtime.link import LinkMethod
from testbed.backends.simulated.connection import RESPONSE, Connect, Ending, Side
from testbed.backends.simulated.link import SimulatedLink
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.node import EPOCH_NS, SimulatedLog, SimulatedNode
from testbed.backends.simulated.peer_links import SimulatedPeerLinks


class SimulatedBroker(SimulatedNode):
    """The broker's shell."""

    def __init__(
        self, log: SimulatedLog, loop: Loop, config: NodeConfig, service_ns: int, connect: Connect
    ) -> None:
        make_core = overlay.METHODS[config.overlay.method]
        station = config.station(incarnation=(EPOCH_NS + loop.now) // SECOND)
        core = make_core(station, config.overlay.parameters, config.random("overlay"))
        super().__init__(log, loop, config, core, service_ns)
        self._default = LinkMethod(config.delivery)
        self._methods = {peer: LinkMethod(chosen) for peer, chosen in config.deliveries.items()}
        self._peer_links = SimulatedPeerLinks(self, connect)
        self._listens = False

    @property
    def ready(self) -> bool:
        return self._listens and self.core.ready

    @property
    def listens(self) -> bool:
        """Whether it accepts connections."""
        return self._listens and self.alive

    def go(self) -> None:
        self._listens = True
        self.perform(self.core.on_deadline(self.loop.seconds))
        self.note_readiness()

    # Links

    def link_up(self, link: SimulatedLink) -> None:
        super().link_up(link)
        self._peer_links.on_up(link)

    def link_down(self, link: SimulatedLink, ending: Ending) -> None:
        if ending.orderly and self.links.get(link.peer) is link and self.alive:
            self._peer_links.carry_on(link)
        super().link_down(link, ending)
        self._peer_links.on_down(link, orderly=ending.orderly)

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        link = self.links.get(peer)
        if link is not None and not link.closing_orderly:
            link.activity.note(message, self.loop.seconds)
            return link.offer(
                data, message.priority, control=message.control, upkeep=message.upkeep
            )
        if self._peer_links.knows(peer):
            return self._peer_links.queue(peer, message, data)
        return (Dropped(data, message.priority, f"there is no link to {peer}"),)

    def unreachable(self, peer: str, reason: str) -> None:
        """No link to this broker can be made."""
        self.log.write("unreachable", peer=peer, reason=reason)
        self.perform(self.core.on_unreachable(peer, self.loop.seconds))
        self.note_readiness()

    # Incoming connections

    def accept(self, side: Side, response_size: int) -> None:
        """Accept a connection; the rest follows from what the peer sends."""
        host = Host(Identity.of(self.config), FIXED_NONCES[1])
        hello_received = False

        def take(item: Any) -> None:
            nonlocal hello_received
            if isinstance(item, str):
                side.send_http(RESPONSE, response_size)
            elif not hello_received:
                hello_received = True
                peer, answer = host.answer(item.data)
                if self._wants(side, peer, proven=False):
                    self._peer_links.add_pending(peer, side)
                    side.send_hello(answer)
            else:
                self._admit(side, host.admit(item.data))

        side.receive_with(take)

    def _admit(self, side: Side, peer: str) -> None:
        if not self._wants(side, peer, proven=True):
            return
        self.end_link(peer, "replaced by a newer connection", POLICY_VIOLATION)
        queue = self._peer_links.adopt(peer)
        method = self._methods.get(peer, self._default)
        side.open(peer, method, method.scheduler() if queue is None else queue)

    def _wants(self, side: Side, peer: str, *, proven: bool) -> bool:
        """Whether a link with this peer is wanted now; if not, close the connection."""
        if self._peer_links.declines(peer, proven=proven):
            side.close(OTHER_WAY, NORMAL)
        elif self.leaving and not self._peer_links.knows(peer):
            side.close(STOPS, GOING_AWAY)
        return not side.ended

    # The end

    def crash(self) -> None:
        super().crash()
        self._peer_links.close()

    def quiet(self) -> None:
        self.perform(self.core.leave(self.loop.seconds))

    @property
    def handed_over(self) -> bool:
        """Close links to clients with an empty queue; links to other brokers stay until the core has left."""
        for peer, link in list(self.links.items()):
            if link.idle and not self._peer_links.knows(peer):
                self.end_link(peer, STOPS, GOING_AWAY)
        return super().handed_over and not self._peer_links.queued

    def end(self) -> None:
        super().end()
        self._peer_links.close()
