"""Brokers, sensors and subscribers in one process and virtual time: their real cores, and links between them.

Links are made on demand, carry messages in order, take their time, and break. A seed decides all chance.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any

from nodes.overlay import METHODS
from nodes.overlay.base import (
    Acknowledged,
    Action,
    BrokerName,
    Deliver,
    Drop,
    Duplicate,
    Note,
    Refuse,
    Send,
    Station,
)
from nodes.overlay.edge import Edge
from nodes.overlay.reliability.settings import reliability_settings
from nodes.protocol.wire import Kind, Message, decode, encode, message_id

NOTICE_S = 0.3  # until a node notices that a link is gone
DIAL_S = 0.2  # until it knows that no node answers
SEEDS = 3  # as a lab has them
RETRY_S = 0.5  # between two attempts of a client to connect


@dataclass(eq=False)
class Link:
    """Two nodes are connected; messages on the way are lost when the link breaks."""

    ends: tuple[str, str]
    whole: bool = True
    last: dict[str, float] = field(default_factory=dict)  # receiver -> when the last message comes


class BrokerNetwork:
    """Nodes by name. Brokers are b1, b2, ...; the first three are the seeds."""

    def __init__(
        self,
        method: str,
        seed: int = 0,
        brokers: int = 5,
        parameters: Mapping[str, Any] | None = None,
        slowest: float = 0.05,
        dimensions: int = 0,
    ) -> None:
        self.method = method
        self.dimensions = dimensions  # of places
        self.parameters = dict(parameters or {})
        self.random = Random(seed)
        self.seed = seed
        self.slowest = slowest
        self.now = 0.0
        self.names = tuple(BrokerName(f"b{number}", number) for number in range(1, brokers + 1))
        self.cores: dict[str, Any] = {}
        self.links: dict[str, dict[str, Link]] = {}  # node -> peer -> link, as this node knows it
        self.brokers_of: dict[
            str, list[str]
        ] = {}  # client -> brokers, in the order of its attempts
        self.delivered: Counter[tuple[str, int]] = Counter()  # client, message id
        self.duplicates = 0
        self.acknowledged: set[int] = set()
        self.refused: list[tuple[str, Refuse]] = []
        self.notes: list[tuple[str, Note]] = []
        self.passed: list[tuple[str, str, Message]] = []  # sender, receiver, message
        self.isolated: set[str] = set()  # brokers whose links to other brokers are dead
        self.split_off: set[str] = set()  # brokers on one side of a partition that no link crosses
        self.slow: dict[frozenset[str], float] = {}  # delay of every message on these links
        self._dialling: dict[tuple[str, str], list[Message]] = {}
        self._to_do: list[tuple[float, int, Callable[[], None]]] = []
        self._planned: dict[str, float] = {}
        self._count = 0
        for broker in self.names:
            self.start(broker.name)

    # Nodes

    def start(self, name: str) -> None:
        """Start a broker, perhaps again."""
        me = next(broker for broker in self.names if broker.name == name)
        others = tuple(broker for broker in self.names if broker != me)
        seeds = tuple(broker for broker in self.names[:SEEDS] if broker != me)
        incarnation = int(self.now * 1000) + 1
        station = Station(name, me.number, others, seeds, incarnation, self.dimensions)
        random = Random(f"{self.seed} {name} {self.now}")
        self._begin(name, METHODS[self.method](station, self.parameters, random))

    def join(self, name: str, number: int, topics: Iterable[str], brokers: Iterable[str]) -> Edge:
        """Start a sensor or subscriber, which tries these brokers."""
        self.brokers_of[name] = list(brokers)
        names = {broker.name: broker for broker in self.names}
        station = Station(name, number, tuple(names[broker] for broker in self.brokers_of[name]))
        edge = Edge(station, reliability_settings(self.method, self.parameters), tuple(topics))
        self._begin(name, edge)
        self._seek(name)
        return edge

    def _begin(self, name: str, core: Any) -> None:
        self.cores[name] = core
        self.links[name] = {}
        self._planned.pop(name, None)
        self._plan(name)

    def alive(self) -> list[str]:
        """The brokers that run."""
        return [broker.name for broker in self.names if broker.name in self.cores]

    def kill(self, name: str) -> None:
        """Stop the node without notice to its peers."""
        del self.cores[name]
        for link in self.links.pop(name).values():
            self._break(link)

    def leave(self, name: str) -> None:
        """Let a broker stop in order: it disconnects its clients, hands over, and ends."""
        self.act(name, self.cores[name].leave(self.now))
        for client in [peer for peer in self.links[name] if peer in self.brokers_of]:
            self.move(client)

    def move(self, client: str, broker: str | None = None) -> None:
        """Break the client's link, so that it attaches to another broker; by default, to the next on its list."""
        brokers = self.brokers_of[client]
        self.brokers_of[client] = (
            brokers[1:] + brokers[:1] if broker is None else [broker, *brokers]
        )
        for link in list(self.links[client].values()):
            self._break(link)

    def cut(self, one: str, other: str) -> None:
        """The link between these two breaks, if there is one."""
        if (link := self.links[one].get(other)) is not None:
            self._break(link)

    def isolate(self, name: str) -> None:
        """Cut all links between this broker and others, until it is removed from `isolated`."""
        self.isolated.add(name)
        for peer in [peer for peer in self.links[name] if peer not in self.brokers_of]:
            self.cut(name, peer)

    def split(self, *names: str) -> None:
        """Cut all links between these brokers and the others, until `split_off` is empty."""
        self.split_off = set(names)
        for name in sorted(self.split_off & self.cores.keys()):
            for peer in [peer for peer in self.links[name] if peer not in self.brokers_of]:
                if not self._reach(name, peer):
                    self.cut(name, peer)

    def _reach(self, one: str, other: str) -> bool:
        apart = (one in self.split_off) != (other in self.split_off)
        return not apart and not self.isolated & {one, other}

    # Clients

    def publish(
        self,
        name: str,
        counter: int,
        topic: str,
        priority: int = 5,
        place: tuple[int, ...] = (),
    ) -> int:
        """Publish; return the message id."""
        identity = message_id(self.cores[name]._station.number, counter)
        message = Message(
            Kind.PUBLISH,
            priority,
            message_id=identity,
            topic=topic,
            payload=b"landslide",
            place=place,
        )
        self.act(name, self.cores[name].publish(message, self.now))
        return identity

    def receivers(self, identity: int) -> set[str]:
        return {name for name, message in self.delivered if message == identity}

    # Time

    def run(self, seconds: float) -> None:
        """Let this much time pass, and process all events in it."""
        end = self.now + seconds
        while self._to_do and self._to_do[0][0] <= end:
            moment, _, callback = heappop(self._to_do)
            self.now = max(self.now, moment)
            callback()
        self.now = end

    def _later(self, moment: float, callback: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._to_do, (moment, self._count, callback))

    def _plan(self, name: str) -> None:
        due = self.cores[name].next_deadline() if name in self.cores else None
        if due is not None and self._planned.get(name) != due:
            self._planned[name] = due
            self._later(due, partial(self._wake, name, self.cores[name], due))

    def _wake(self, name: str, core: Any, due: float) -> None:
        if name in self.cores and self.cores[name] is core and core.next_deadline() == due:
            self._planned.pop(name, None)
            self.act(name, core.on_deadline(self.now))

    # Actions

    def act(self, name: str, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Send(peer, message):
                    self._send(name, peer, message)
                case Deliver(message):
                    self.delivered[name, message.message_id] += 1
                case Duplicate():
                    self.duplicates += 1
                case Acknowledged(identity):
                    self.acknowledged.add(identity)
                case Drop(peer):
                    if (link := self.links[name].pop(peer, None)) is not None:
                        self._break(link)
                case Refuse(peer):
                    self.refused.append((name, action))
                case Note():
                    self.notes.append((name, action))
        self._plan(name)

    def _send(self, name: str, peer: str, message: Message) -> None:
        assert decode(encode(message)) == message
        self.passed.append((name, peer, message))
        link = self.links[name].get(peer)
        if link is not None:
            self._carry(link, name, peer, message)
        elif (name, peer) in self._dialling:
            self._dialling[name, peer].append(message)
        elif name not in self.brokers_of and peer not in self.brokers_of:
            self._dialling[name, peer] = [message]
            self._later(
                self.now + self.random.uniform(0.01, DIAL_S), lambda: self._dial(name, peer)
            )

    def _carry(self, link: Link, sender: str, receiver: str, message: Message) -> None:
        slow = self.slow.get(frozenset((sender, receiver)))
        took = self.random.uniform(0.01, self.slowest) if slow is None else slow
        moment = max(self.now + took, link.last.get(receiver, 0.0))
        link.last[receiver] = moment

        def arrive() -> None:
            if link.whole and self.links.get(receiver, {}).get(sender) is link:
                self.act(receiver, self.cores[receiver].on_message(sender, message, self.now))

        self._later(moment, arrive)

    # Links

    def _dial(self, name: str, peer: str) -> None:
        waiting = self._dialling.pop((name, peer))
        if name not in self.cores:
            return
        if peer not in self.cores or not self._reach(name, peer):
            self.act(name, self.cores[name].on_unreachable(peer, self.now))
            return
        link = self.links[name].get(peer)
        if link is None:
            link = self._connect(name, peer)
        for message in waiting:
            self._carry(link, name, peer, message)

    def _connect(self, one: str, other: str) -> Link:
        link = Link((one, other))
        for name, peer in ((one, other), (other, one)):
            if (older := self.links[name].pop(peer, None)) is not None:
                older.whole = False
                self.act(name, self.cores[name].on_link_down(peer, self.now))
        for name, peer in ((other, one), (one, other)):
            self.links[name][peer] = link
        for name, peer in ((other, one), (one, other)):
            self.act(name, self.cores[name].on_link_up(peer, self.now))
        return link

    def _break(self, link: Link) -> None:
        link.whole = False
        for name, peer in (link.ends, link.ends[::-1]):
            moment = self.now + self.random.uniform(0, NOTICE_S)
            self._later(moment, partial(self._notice, link, name, peer))

    def _notice(self, link: Link, name: str, peer: str) -> None:
        if self.links.get(name, {}).get(peer) is not link:
            return
        del self.links[name][peer]
        self.act(name, self.cores[name].on_link_down(peer, self.now))
        if name in self.brokers_of:
            self._seek(name)

    def _seek(self, client: str) -> None:
        """Connect with the first broker of the list that runs; move brokers that were tried to its end."""
        if client not in self.cores or self.links[client]:
            return
        brokers = self.brokers_of[client]
        if brokers[0] in self.cores and not self.cores[brokers[0]]._local.leaving:
            self._connect(client, brokers[0])
        else:
            self.brokers_of[client] = brokers[1:] + brokers[:1]
            self._later(self.now + RETRY_S, lambda: self._seek(client))
