"""A broker of the Z-order map: publish/subscribe by area, levelled by load (Ogawa, Nakamura, Saito).

The space is one line, the Z-order curve, and a Skip Graph of areas stands on it: each broker has one key, the first
point of its area (`keys`). What is where:

- `areas`: which points are a broker's own, as the ring says.
- `holdings`: who serves which points, and how that right goes from broker to broker. Its rules are the heart of this.
- `ground`: where on the curve publications happen, and at which points an interest must be known.
- `registering`, `walks`, `registry`: how interests come there, and are kept.
- `traffic`: publications to the owners of their points, and from there straight to those who want them.
- `levelling`: who moves where.
- `resident`: all of these together, moves, and what is done with each word. Here: what brokers want, and when.

What is promised. A publication reaches every broker whose interest was confirmed (Subscribed) before and that stays,
once, whatever joins, leaves and moves go on meanwhile and however long messages take, if no message is lost and nobody
crashes. Why: when a walk has passed a point, the interest is known wherever that point is served; a publication is
matched only by who serves its point. If brokers crash, publications with custody still arrive, as those who sent to a
dead broker send again (`serve_again`) and whoever was not known somewhere asks for what it has missed (Restored). A
broker that has lost its whole memory in a crash is told apart from its earlier life by its versions.
Not promised: publications without custody while brokers crash.
"""

from typing import Any, ClassVar

from nodes.overlay.interests import parse
from nodes.overlay.skipgraph.codec import decode
from nodes.overlay.tbps.base import Action, Refuse
from nodes.overlay.tbps.keys import Role, edge
from nodes.overlay.zorder_map import words
from nodes.overlay.zorder_map.resident import Resident
from nodes.overlay.zorder_map.spans import Spans
from nodes.wire import Kind, Message, WireError

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
        self._say_to_all(words.Question(topic, words_))
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
                self._tell(sender, words.Forget(self._life))
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
        self._tell(number, words.RollCall(everywhere))
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
