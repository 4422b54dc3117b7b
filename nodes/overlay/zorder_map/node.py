"""A broker of the Z-order map: publish/subscribe by area, levelled by load (Ogawa, Nakamura, Saito).

The space is one line, the Z-order curve, and a Skip Graph of areas stands on it: each broker has one key, the first
point of its area (`keys`). What is where:

- `ownership`: which points are a broker's own, as the ring says, and who serves which points: how that
  right goes from broker to broker. Its rules are the heart of this.
- `keys`: where on the curve publications happen, and at which points an interest must be known.
- `registration`, `registry`: how interests come there, and are kept.
- `forwarding`: publications to the owners of their points, and from there straight to those who want them.
- `levelling`: who moves where.
- Here: a broker as a member of the graph; moves, and what is done with each message; what brokers want, and when.

What is promised. A publication reaches every broker whose interest was confirmed (Subscribed) before and that stays,
once, whatever joins, leaves and moves go on meanwhile and however long messages take, if no message is lost and nobody
crashes. Why: when a walk has passed a point, the interest is known wherever that point is served; a publication is
matched only by who serves its point. If brokers crash, publications with custody still arrive, as those who sent to a
dead broker send again (`serve_again`) and whoever was not known somewhere asks for what it has missed (Restored). A
broker that has lost its whole memory in a crash is told apart from its earlier life by its versions.
Not promised: publications without custody while brokers crash.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

from nodes.overlay.reliability.dedup import Seen
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.topics.base import Action, Advertised, Asked, Doubted, Place, Refuse, Send
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.zorder_map.forwarding import Traffic
from nodes.overlay.zorder_map.keys import Ground, Keys
from nodes.overlay.zorder_map.levelling import Levelling
from nodes.overlay.zorder_map.ownership import Areas, Holdings
from nodes.overlay.zorder_map.registration import Registering, Walks
from nodes.overlay.zorder_map.registry import LIFE_BITS, Registry
from nodes.overlay.zorder_map.settings import Settings
from nodes.protocol import zorder_map_messages
from nodes.protocol.interests import parse
from nodes.protocol.overlay_messages import written
from nodes.protocol.regions import Spans
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Multicast
from nodes.protocol.wire import Kind, Message, WireError, message_id
from nodes.protocol.zorder_map_messages import MapWord, Register, hear, say

# A broker of the map as a member of the graph: its keys, what it says to others, and what it hears.
#
# Words are dealt with one after the other, in the order in which they come, also those to itself: none begins while
# another is being dealt with. But a change in the ring is followed at once: no word is heard in between (`ownership`).


Handlers = dict[type[Any], Callable[[int, Any], None]]


class Member(ABC):
    """What a broker is before it knows of any area."""

    def __init__(self, place: Place, settings: Settings, random: Random) -> None:
        self.number = place.number
        self.keys = Keys(settings.dimensions)
        self.graph = SkipGraphNode(
            place.number,
            random.getrandbits(VECTOR_BITS) if place.vector is None else place.vector,
            place.introducers,
            random,
            place.incarnation,
            settings.period_s,
            settings.idle_period_s,
            place.watched,
            place.fallbacks,
        )
        self._random = random
        self._handlers: Handlers = {}
        self._life = (place.incarnation & 0xFFFFFFFF) << LIFE_BITS
        self._numbers = self._life
        self._inbox: deque[tuple[int, MapWord]] = deque()
        self._heard = Seen()  # words to all
        self._out: list[Action] = []
        self._now = 0.0

    @abstractmethod
    def _on_moved(self) -> None:
        """The ring has changed at one of the own keys."""

    @abstractmethod
    def _on_inserted(self, key: bytes) -> None:
        """An own key stands in the ring."""

    @abstractmethod
    def _on_restored(self) -> None:
        """An own key had lost its place in the ring, and has it again."""

    def _next_number(self) -> int:
        """For versions, tickets and words to all; it goes on growing, also from one life to the next."""
        self._numbers += 1
        return self._numbers

    def _wavering(self, seconds: float) -> float:
        """About so many, so that not all brokers do the same at the same time."""
        return seconds * (0.9 + 0.2 * self._random.random())

    def _neighbours(self) -> list[int]:
        """Other nodes that are known from the graph."""
        peers = map(self.graph.peer, self.graph.own_keys())
        near = {contact.node for peer in peers if peer is not None for contact in peer.neighbours()}
        return sorted(near - {self.number})

    # What it says

    def _do(self, action: Action) -> None:
        self._out.append(action)

    def _tell(self, node: int, word: MapWord) -> None:
        self._act(self.graph.tell(node, say(word), self._now))

    def _carry(self, walk: Register) -> None:
        self._act(self.graph.carry(self.keys.sought(walk.first), say(walk), self._now))

    def _say_to_all(self, word: MapWord) -> None:
        identity = message_id(self.number, self._next_number())
        end = self.keys.sought((1 << self.keys.bits) - 1)
        self._act(self.graph.multicast(b"", end, identity, say(word), self._now))

    # What happens

    def _act(self, actions: list[graph.Action]) -> None:
        if any(isinstance(action, graph.Moved | graph.Removed) for action in actions):
            self._on_moved()
        for action in actions:
            match action:
                case graph.Send():
                    self._out.append(Send(action.node, written(action.message, self.number)))
                case graph.Told(sender, body) | graph.Carried(_, sender, body):
                    self._inbox.append((sender, hear(body, self.keys.bits)))
                case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body) as to_all):
                    if self._heard.add(to_all.identity):
                        self._inbox.append((sender, hear(body, self.keys.bits)))
                case graph.Inserted(key):
                    self._on_inserted(key)
                case graph.Restored():
                    self._on_restored()
                case graph.Doubted(node):
                    self._out.append(Doubted(node))

    def _hear_all(self) -> None:
        """What has come."""
        while self._inbox:
            sender, word = self._inbox.popleft()
            try:
                self._handlers[type(word)](sender, word)
            except WireError as error:
                self._out.append(Refuse(sender, str(error)))


# A broker that stands on the map: the parts it is made of, its area and its moves, and the words that it hears.
#
# A broker that moves inserts its new key, and then takes the old one out: it stands in the ring all the time. It does
# one move at a time.


SOON_S = 5.0  # after a change, interests are said again
FORGET_AFTER = 3  # renewals without a word


class Resident(Member):
    """What a broker is and hears; when it does what is the affair of the whole (`node`)."""

    method = "zorder-map"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        settings = Settings.of(self.method, parameters)
        super().__init__(place, settings, random)
        self._period_s, self._renew_s = settings.period_s, settings.renew_s
        start = self.keys.first_start(place.number, settings.start)
        self._first_key = self.keys.key(start, place.number)
        ground = Ground(self.keys, settings.stretches)
        self.registry = Registry(ground, FORGET_AFTER * settings.renew_s)
        areas = Areas(self.keys, self.graph)
        self.holdings = Holdings(
            self.graph,
            areas,
            self.registry,
            settings.recover_s,
            place.watched,
            self._next_number,
            self._tell,
            lambda spans: self._say_to_all(zorder_map_messages.RollCall(spans)),
            self._do,
        )
        self.own = Registering(place.number, ground, self._next_number, self._carry, self._do)
        self._walks = Walks(self.holdings, self.registry, self._carry, self._tell)
        self._levelling = Levelling(
            place.number,
            settings,
            self.keys.bits,
            random,
            lambda: len(self.registry),
            self._neighbours,
            self._tell,
            lambda: self._may_move,
            self._begin_move,
        )
        self._traffic = Traffic(
            place.number,
            ground,
            areas,
            self.holdings,
            self.registry,
            self.own,
            lambda: self._next_number() & 0xFFFFFFFF,
            lambda point: self._levelling.served(point, self._now),
            self._do,
        )
        self._handlers = self._hearing()
        self._advertised: set[str] = set()
        self._confirmed: set[str] = set()  # of these
        self._begun = False
        self._leaving = False
        self._farewells = 0
        self._restless = False  # the map may have changed
        self._tick_at: float | None = None
        self._renew_pause = self._renew_s
        self._renew_at: float | None = None

    def _renew_soon(self) -> None:
        """Something has changed: others may not know any more what is wanted here."""
        self._renew_pause = min(SOON_S, self._renew_s)
        at = self._now + self._wavering(self._renew_pause)
        self._renew_at = at if self._renew_at is None else min(at, self._renew_at)

    # Areas

    @property
    def _may_move(self) -> bool:
        return self.graph.stands and len(self.graph.own_keys()) == 1 and not self._leaving

    def _begin_move(self, point: int) -> None:
        if self._may_move:
            self._act(self.graph.insert(self.keys.key(point, self.number), self._now))

    def _on_inserted(self, key: bytes) -> None:
        """The newest key is the one that counts; those from before a move go."""
        for other in self.graph.own_keys():
            if other != key:
                self._act(self.graph.remove(other, self._now))
        self.own.begin()
        self._confirm()

    def _on_moved(self) -> None:
        self.holdings.settle(self._now)
        self._restless = True

    def _on_restored(self) -> None:
        self._renew_soon()

    def _confirm(self) -> None:
        if self.graph.stands:
            for topic in sorted(self._advertised - self._confirmed):
                self._confirmed.add(topic)
                self._out.append(Advertised(topic))

    # Words

    def _hearing(self) -> Handlers:
        holdings, levelling = self.holdings, self._levelling
        return {
            zorder_map_messages.Register: lambda _, word: self._walks.on_register(word, self._now),
            zorder_map_messages.Registered: lambda _, word: self.own.on_registered(word),
            zorder_map_messages.Handover: self._on_handover,
            zorder_map_messages.Received: lambda sender, word: holdings.on_received(
                sender, word.ticket
            ),
            zorder_map_messages.Want: holdings.on_want,
            zorder_map_messages.Patience: self._on_patience,
            zorder_map_messages.RollCall: lambda _, word: self.own.on_roll_call(word.spans),
            zorder_map_messages.Forget: lambda sender, word: self.registry.forget_before(
                sender, word.version
            ),
            zorder_map_messages.Question: self._on_question,
            zorder_map_messages.Sample: lambda _, word: levelling.on_sample(word, self._now),
            zorder_map_messages.Load: lambda sender, word: levelling.on_load(
                sender, word, self._now
            ),
            zorder_map_messages.Relieve: lambda _, word: levelling.on_relieve(word, self._now),
            zorder_map_messages.Offer: self._on_offer,
            zorder_map_messages.Cut: lambda sender, word: levelling.on_cut(sender, word, self._now),
        }

    def _on_handover(self, sender: int, word: zorder_map_messages.Handover) -> None:
        self.holdings.on_handover(sender, word, self._now)
        self._restless = True

    def _on_patience(self, sender: int, word: zorder_map_messages.Patience) -> None:
        self.holdings.on_patience(sender, word, self._now)
        self._restless = True

    def _on_offer(self, sender: int, _: zorder_map_messages.Offer) -> None:
        if self._may_move:
            first = self.keys.start(self.graph.own_keys()[0])
            self._levelling.on_offer(sender, first, self.holdings.served, self._now)

    def _on_question(self, sender: int, word: zorder_map_messages.Question) -> None:
        if sender != self.number and parse(word.text).topic in self._advertised:
            self._out.append(Asked(sender, word.text, word.words))


FAREWELLS = 8  # periods for telling others that nothing is wanted any more


class ZorderMap(Resident):
    """A broker of the map."""

    relay_free: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    by_area: ClassVar[bool] = True
    ways: ClassVar[tuple[str, ...]] = ()

    # What the broker wants

    def advertise(self, topic: str, now: float) -> list[Action]:
        edge(topic, Role.PUBLISHER)  # every method refuses the same topics
        self._begin(now)
        self._advertised.add(topic)
        self._confirm()
        return self._done()

    def withdraw(self, topic: str, now: float) -> list[Action]:
        self._begin(now)
        self._advertised.discard(topic)
        self._confirmed.discard(topic)
        return self._done()

    def subscribe(self, topic: str, now: float) -> list[Action]:
        interest = parse(topic)
        edge(interest.topic, Role.SUBSCRIBER)
        self._begin(now)
        self.own.subscribe(interest)
        return self._done()

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        self._begin(now)
        self.own.unsubscribe(topic)
        return self._done()

    def publish(self, message: Message, now: float) -> list[Action]:
        if message.topic not in self._advertised:
            raise ValueError(f"topic {message.topic!r} is not advertised here; advertise it first")
        self._begin(now)
        self._traffic.publish(message)
        return self._done()

    def ask(self, topic: str, words_: bytes, now: float) -> list[Action]:
        self._begin(now)
        self._say_to_all(zorder_map_messages.Question(topic, words_))
        return self._done()

    def leave(self, now: float) -> list[Action]:
        self._begin(now)
        self._leaving = True
        self._advertised.clear()
        self.own.leave()
        return self._done()

    @property
    def left(self) -> bool:
        waits = self.holdings.sending or self._traffic
        return self._leaving and self.graph.left and not waits

    def serve_again(self, message: Message, now: float) -> list[Action]:
        self._begin(now)
        self._traffic.serve_again(message)
        return self._done()

    def holds(self, message_id: int) -> bool:
        return self._traffic.holds(message_id)

    def describe(self) -> dict[str, Any]:
        return {
            **self.graph.describe(),
            "areas": [[f"{first:x}", f"{last:x}"] for first, last in self.holdings.served],
            "interests": len(self.registry),
            "load": self._levelling.load(self._now),
        }

    def move_to(self, point: int, now: float) -> list[Action]:
        """Give the area up, and take what lies from this point on up to the next broker; one move at a time."""
        self._begin(now)
        self._begin_move(point)
        return self._done()

    # What happens

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        self._begin(now)
        try:
            if message.kind is Kind.OVERLAY:
                self._act(self.graph.on_message(sender, decode(message.payload), now))
            elif not self._traffic.on_publication(message):
                self._tell(sender, zorder_map_messages.Forget(self._life))
        except WireError as error:
            self._out.append(Refuse(sender, str(error)))
        return self._done()

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        self._begin(now)
        self._act(self.graph.on_peer_lost(number, now))
        self.registry.forget(number)
        self.holdings.lose(number, now)
        self._renew_soon()
        return self._done()

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        self._begin(now)
        self._act(self.graph.on_peer_found(number, now))
        everywhere = Spans([(0, (1 << self.keys.bits) - 1)])
        self._tell(number, zorder_map_messages.RollCall(everywhere))
        self._renew_soon()
        return self._done()

    def next_deadline(self) -> float | None:
        if not self._begun:
            return 0.0  # at once: every broker has its area
        moments = (
            self.graph.next_deadline(),
            self._tick_at,
            self._renew_at,
            self._levelling.next_deadline(),
        )
        return min((at for at in moments if at is not None), default=None)

    def on_deadline(self, now: float) -> list[Action]:
        self._begin(now)
        if self._tick_at is not None and now >= self._tick_at:
            self._tick_at = None
            self._restless = True
            self._farewells += self._leaving
            self.holdings.tick(now)
            self.own.tick()
        if self._renew_at is not None and now >= self._renew_at:
            self._renew()
        self._levelling.on_deadline(now)
        self._act(self.graph.on_deadline(now))
        return self._done()

    # From time to time

    def _begin(self, now: float) -> None:
        """Every call begins here: the first one inserts the key, unless the graph stands already."""
        self._now = now
        if self._begun:
            return
        self._begun = True
        if self.graph.own_keys():
            self.holdings.begin()
        else:
            self._act(self.graph.insert(self._first_key, now))

    def _renew(self) -> None:
        """What is wanted is said again, and what others have not said for long is forgotten."""
        self.own.renew()
        self.registry.tidy(self.holdings.concerned(), self._now)
        self._renew_pause = min(2 * self._renew_pause, self._renew_s)
        self._renew_at = self._now + self._wavering(self._renew_pause)

    def _done(self) -> list[Action]:
        self._go()
        while self._inbox or self._restless:
            self._hear_all()
            if self._restless:
                self._restless = False
                self._walks.go_on()
                self._traffic.go_on()
            self._go()
        busy = self.holdings or self.own.busy or self._walks or self._traffic or self._leaving
        if self._tick_at is None and busy and not self.left:
            self._tick_at = self._now + self._wavering(self._period_s)
        if self._renew_at is None and (len(self.own) or len(self.registry)):
            self._renew_at = self._now + self._wavering(self._renew_pause)
        out, self._out = self._out, []
        return out

    def _go(self) -> None:
        """Who leaves says first that it wants nothing, then gives up its area."""
        if not self._leaving:
            return
        if self._farewells >= FAREWELLS or not self.graph.stands:
            self.own.give_up()
        if not self.own.leaving:
            for key in self.graph.own_keys():
                self._act(self.graph.remove(key, self._now))
