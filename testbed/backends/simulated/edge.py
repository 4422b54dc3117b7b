"""A sensor or subscriber in virtual time: one link to one of its brokers, made again whenever it breaks."""

import json
from dataclasses import dataclass, field

from nodes.delivery.base import Dropped
from nodes.overlay.edge import Edge
from nodes.overlay.reliability.custody import encoded_with_custody
from nodes.overlay.reliability.dedup import DeliveryRecord
from nodes.overlay.reliability.outbox import MAX_REPEATED
from nodes.overlay.reliability.settings import reliability_settings
from nodes.protocol.wire import Message
from nodes.runtime.broker_selection import Backoff, BrokerSelection
from nodes.runtime.config import NodeConfig
from nodes.runtime.link import LinkMethod
from nodes.runtime.log import about_published
from nodes.runtime.publisher import Publication, Publisher
from testbed.backends.simulated.connection import Connect, Dial, Ending
from testbed.backends.simulated.link import SimulatedLink
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.node import EPOCH_NS, SimulatedLog, SimulatedNode

Moment = tuple[int, Publication]  # when it is due


@dataclass(slots=True)
class Disk:
    """The state that survives a restart of a node."""

    published: int = 0  # how many messages it has made
    outbox: dict[int, Message] = field(default_factory=dict)  # its journal: unacknowledged,
    acknowledged: dict[int, Message] = field(default_factory=dict)  # and those acknowledged lately
    scheduled: list[Moment] = field(default_factory=list)  # what it is to publish


class SimulatedEdge(SimulatedNode):
    """A sensor or subscriber."""

    core: Edge

    def __init__(
        self,
        log: SimulatedLog,
        loop: Loop,
        config: NodeConfig,
        service_ns: int,
        connect: Connect,
        disk: Disk,
    ) -> None:
        promised = reliability_settings(config.overlay.method, config.overlay.parameters)
        again = bool(log.lines)
        super().__init__(
            log, loop, config, Edge(config.station(), promised, config.topics), service_ns
        )
        self._promises = promised
        self._method = LinkMethod(config.delivery)
        self._queue = self._method.scheduler()
        self._connect_to = connect
        self._dial: Dial | None = None
        self._broker_selection = BrokerSelection(
            config.brokers, Backoff(config.random("reconnect"))
        )
        self._problems: dict[str, str] = {}  # broker: why it could not be reached the last time
        self._up_since = 0
        self._disk = disk
        self._publisher = Publisher(config.number, disk.published)
        if again and promised.custody_from is not None:
            self._restore_dedup_window()

    @property
    def ready(self) -> bool:
        return self.core.ready

    def go(self) -> None:
        now = self.loop.seconds
        oldest_ns = EPOCH_NS + round((now - self._promises.retain_s) * SECOND)
        acknowledged = [
            each for each in self._disk.acknowledged.values() if each.published_ns >= oldest_ns
        ]
        self.core.repeat(acknowledged, now)
        self.perform(self.core.restore(self._disk.outbox.values(), now))
        self._connect()
        self._play()

    def play(self, moments: list[Moment]) -> None:
        """Publish at these moments, in the order of time; one that is started again goes on with the rest."""
        self._disk.scheduled = moments
        self._play()

    def play_more(self, moments: list[Moment]) -> None:
        """Publish at these moments, too; one that is down does so when it is started again in time."""
        self._disk.scheduled = sorted([*self._disk.scheduled, *moments], key=lambda one: one[0])
        if self.alive and not self.leaving:
            self._begin(moments)

    # Links

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        if peer in self.links:
            return super().queue_message(peer, message, data)
        now = self.loop.seconds
        return self._queue.offer(data, message.priority, now, control=message.control)

    def link_up(self, link: SimulatedLink) -> None:
        self._up_since = self.loop.now
        self._problems.pop(link.peer, None)
        super().link_up(link)

    def link_down(self, link: SimulatedLink, ending: Ending) -> None:
        self._queue.withdraw(encoded_with_custody)  # the core keeps these
        super().link_down(link, ending)
        if self.alive:
            lived_s = (self.loop.now - self._up_since) / SECOND
            leave = ending.sent_away or ending.silent
            self._connect_after(self._broker_selection.on_link_lost(lived_s, leave=leave))

    def _connect(self, _: None = None) -> None:
        if self.alive:
            self._dial = Dial(
                self._broker_selection.next,
                self._method,
                self._queue,
                self._connect_to,
                self._on_failed,
            )

    def _on_failed(self, dial: Dial, ending: Ending) -> None:
        peer, problem = dial.broker.name, ending.reason
        if problem != self._problems.get(peer):  # log a broker that stays away only once
            self.log.write("unreachable", peer=peer, reason=problem)
        self._problems[peer] = problem
        self._connect_after(self._broker_selection.on_unreachable())

    def _connect_after(self, wait_s: float) -> None:
        self.loop.at(self.loop.now + round(wait_s * SECOND), self._connect)

    # Publishing

    def forget(self, message_id: int) -> None:
        if (message := self._disk.outbox.pop(message_id, None)) is not None:
            self._disk.acknowledged[message_id] = message
            while len(self._disk.acknowledged) > MAX_REPEATED:
                del self._disk.acknowledged[next(iter(self._disk.acknowledged))]

    def _play(self) -> None:
        moments = [moment for moment in self._disk.scheduled if moment[0] >= self.loop.now]
        self._disk.scheduled = moments
        self._begin(moments)

    def _begin(self, moments: list[Moment]) -> None:
        if moments:
            topics = dict.fromkeys(what.topic for _, what in moments)
            self.perform(self.core.advertise(topics, self.loop.seconds))
            self.loop.at(moments[0][0], self._publish_next, (moments, 0))

    def _publish_next(self, plan: tuple[list[Moment], int]) -> None:
        moments, place = plan
        if not self.alive or self.leaving:
            return
        self._publish(moments[place][1])
        if place + 1 < len(moments):
            self.loop.at(moments[place + 1][0], self._publish_next, (moments, place + 1))

    def _publish(self, what: Publication) -> None:
        message = self._publisher.make(what, EPOCH_NS + self.loop.now)
        self._disk.published += 1
        if self._promises.custody(message.priority):
            self._disk.outbox[message.message_id] = message
        self.log.write("publish", **about_published(message, late_ns=0))
        self.published += 1
        self.later(self.perform, self.core.publish(message, self.loop.seconds))

    # Restart

    def _restore_dedup_window(self) -> None:
        """Fill the dedup window with the messages that its log says it received before it was restarted."""
        records = [json.loads(line) for line in self.log.lines]
        if any(line["event"] == "ready" for line in records):
            self.core.resume(
                DeliveryRecord(
                    int(line["id"], 16),
                    line["topic"],
                    line["priority"],
                    (line["t"] - EPOCH_NS) / SECOND,
                )
                for line in records
                if line["event"] == "receive"
            )

    def crash(self) -> None:
        super().crash()
        if self._dial is not None:
            self._dial.abandon()
