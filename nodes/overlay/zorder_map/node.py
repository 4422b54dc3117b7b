"""A broker of the Z-order map: publish/subscribe by area, levelled by load (Ogawa, Nakamura, Saito).

The Z-order curve maps the space to one line, and the keys of a Skip Graph are areas on it: each broker has one key, the
first point of its area (`keys`). The modules:

- `ownership`: the points that a broker owns, by the ring, and the points that it serves: how the right to serve goes
  from broker to broker. Its rules are the core of the method.
- `keys`: the points of publications, and the points at which an interest must be registered.
- `registration`, `registry`: how interests reach those points, and how brokers store them.
- `forwarding`: publications to the owners of their points, and from there directly to the brokers with interests.
- `levelling`: moves of brokers.
- `member`: the broker's place in the graph, and its control messages.
- This module puts all of these together, moves the broker, and handles control messages and time.

A broker handles control messages one after the other, in the order of their arrival, including those to itself. But it
follows a change in the ring at once: it handles no message in between (`ownership`). A broker that moves inserts its
new key first, and then removes the old one: so it is in the ring all the time. It does one move at a time.

Guarantee: a publication reaches every broker whose interest was confirmed (Subscribed) before and that stays, once,
whatever brokers join, leave and move meanwhile and however long messages take, if no message is lost and no broker
crashes. Reasons: when a walk has passed a point, the interest is registered wherever that point is served; and only the
broker that serves a publication's point matches it. If brokers crash, publications with custody still arrive: the
brokers that sent to a dead broker send again (`serve_again`), and a broker whose interest was missing somewhere asks
for what it has missed (Restored). Versions distinguish a broker that has lost its memory in a crash from its earlier
incarnation. Not guaranteed: publications without custody while brokers crash.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.base import Action, Advertised, Asked, Place, Send, Suspected
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.topic_graph import Context
from nodes.overlay.zorder_map.forwarding import Traffic
from nodes.overlay.zorder_map.keys import CurveSpace
from nodes.overlay.zorder_map.levelling import Levelling
from nodes.overlay.zorder_map.member import Member
from nodes.overlay.zorder_map.ownership import Areas, Holdings
from nodes.overlay.zorder_map.registration import OwnInterests, Walks
from nodes.overlay.zorder_map.registry import Registry
from nodes.overlay.zorder_map.settings import Settings
from nodes.protocol import zorder_map_messages
from nodes.protocol.interests import parse
from nodes.protocol.overlay_messages import written
from nodes.protocol.regions import Spans
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import Multicast
from nodes.protocol.wire import Kind, Message

LEAVE_PERIODS = 8  # periods for cancelling the own interests at other brokers
SOON_S = 5.0  # after a change, interests are refreshed
FORGET_AFTER = 3  # refreshes without a message

Handlers = dict[type[Any], Callable[[int, Any, Context], object]]


class ZorderMap:
    """A broker of the map; implements `base.TopicNode`."""

    method: ClassVar[str] = "zorder-map"
    relay_free: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    by_area: ClassVar[bool] = True
    ways: ClassVar[tuple[str, ...]] = ()

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        settings = Settings.of(self.method, parameters)
        member = Member(place, settings, random)
        self.number, self.keys, self.graph = member.number, member.keys, member.graph
        self.first_key = self.keys.key(
            self.keys.first_start(place.number, settings.start), place.number
        )
        space = CurveSpace(self.keys, settings.stretches)
        areas = Areas(self.keys, self.graph)
        self.registry = Registry(space, FORGET_AFTER * settings.renew_s)
        self.holdings = Holdings(member, areas, self.registry, settings.recover_s, place.watched)
        self.own = OwnInterests(member, space)
        self._member = member
        self._walks = Walks(member, self.holdings, self.registry)
        self._levelling = Levelling(member, settings, self.registry, random)
        self._traffic = Traffic(
            member, space, areas, self.holdings, self.registry, self.own, self._levelling
        )
        self._handlers = self._handling()
        self._inbox: deque[tuple[int, zorder_map_messages.MapMessage]] = deque()
        self._dedup_window = DedupWindow()  # broadcasts
        self._advertised: set[str] = set()
        self._confirmed: set[str] = set()  # of these
        self._begun = False
        self._leaving = False
        self._leave_periods = 0
        self._map_changed = False  # the map may have changed
        self._period_s, self._renew_s = settings.period_s, settings.renew_s
        self._tick_at: float | None = None
        self._renew_pause = self._renew_s
        self._renew_at: float | None = None
        self._called_at = 0.0

    # Requests of the layer above

    def advertise(self, topic: str, now: float) -> list[Action]:
        edge(topic, Role.PUBLISHER)  # every method refuses the same topics
        context = self._begin(now)
        self._advertised.add(topic)
        self._confirm(context)
        return self._done(context)

    def withdraw(self, topic: str, now: float) -> list[Action]:
        context = self._begin(now)
        self._advertised.discard(topic)
        self._confirmed.discard(topic)
        return self._done(context)

    def subscribe(self, topic: str, now: float) -> list[Action]:
        interest = parse(topic)
        edge(interest.topic, Role.SUBSCRIBER)
        context = self._begin(now)
        self.own.subscribe(interest, context)
        return self._done(context)

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        context = self._begin(now)
        self.own.unsubscribe(topic, context)
        return self._done(context)

    def publish(self, message: Message, now: float) -> list[Action]:
        if message.topic not in self._advertised:
            raise ValueError(f"topic {message.topic!r} is not advertised here; advertise it first")
        context = self._begin(now)
        self._traffic.publish(message, context)
        return self._done(context)

    def ask(self, topic: str, payload: bytes, now: float) -> list[Action]:
        context = self._begin(now)
        self._member.notify_all(zorder_map_messages.Question(topic, payload), context)
        return self._done(context)

    def leave(self, now: float) -> list[Action]:
        context = self._begin(now)
        self._leaving = True
        self._advertised.clear()
        self.own.leave(context)
        return self._done(context)

    @property
    def left(self) -> bool:
        waits = self.holdings.sending or self._traffic
        return self._leaving and self.graph.left and not waits

    def serve_again(self, message: Message, now: float) -> list[Action]:
        context = self._begin(now)
        self._traffic.serve_again(message, context)
        return self._done(context)

    def holds(self, message_id: int) -> bool:
        return self._traffic.holds(message_id)

    def describe(self) -> dict[str, Any]:
        return {
            **self.graph.describe(),
            "areas": [[f"{first:x}", f"{last:x}"] for first, last in self.holdings.served],
            "interests": len(self.registry),
            "load": self._levelling.load(self._called_at),
        }

    def move_to(self, point: int, now: float) -> list[Action]:
        """Give up the area, and take the points from this one up to the next broker's; one move at a time."""
        context = self._begin(now)
        self._begin_move(point, context)
        return self._done(context)

    # Events

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        context = self._begin(now)
        with context.refusing(sender):
            if message.kind is Kind.OVERLAY:
                context.perform(self.graph.on_message(sender, decode(message.payload), now))
            elif not self._traffic.on_publication(message, context):
                self._member.notify(
                    sender, zorder_map_messages.Forget(self._member.incarnation), context
                )
        return self._done(context)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        context = self._begin(now)
        context.perform(self.graph.on_peer_lost(number, now))
        self.registry.forget(number)
        self.holdings.lose(number, context)
        self._renew_soon(context)
        return self._done(context)

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        context = self._begin(now)
        context.perform(self.graph.on_peer_found(number, now))
        everywhere = Spans([(0, (1 << self.keys.bits) - 1)])
        self._member.notify(number, zorder_map_messages.RollCall(everywhere), context)
        self._renew_soon(context)
        return self._done(context)

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
        context = self._begin(now)
        if self._tick_at is not None and now >= self._tick_at:
            self._tick_at = None
            self._map_changed = True
            self._leave_periods += self._leaving
            self.holdings.tick(context)
            self.own.tick(context)
        if self._renew_at is not None and now >= self._renew_at:
            self._renew(context)
        self._levelling.on_deadline(context)
        context.perform(self.graph.on_deadline(now))
        return self._done(context)

    # One call

    def _begin(self, now: float) -> Context:
        """Begin a call: the first one inserts the key, unless the graph is set up already."""
        self._called_at = now
        context = Context(now, self._on_graph)
        if not self._begun:
            self._begun = True
            if self.graph.own_keys():
                self.holdings.begin()
            else:
                self._member.insert(self.first_key, context)
        return context

    def _done(self, context: Context) -> list[Action]:
        """Handle the control messages of the call, and the changes that follow."""
        self._go(context)
        while self._inbox or self._map_changed:
            self._handle_all(context)
            if self._map_changed:
                self._map_changed = False
                self._walks.go_on(context)
                self._traffic.go_on(context)
            self._go(context)
        busy = self.holdings or self.own.busy or self._walks or self._traffic or self._leaving
        if self._tick_at is None and busy and not self.left:
            self._tick_at = context.now + self._member.jittered(self._period_s)
        if self._renew_at is None and (len(self.own) or len(self.registry)):
            self._renew_at = context.now + self._member.jittered(self._renew_pause)
        return context.actions

    def _handle_all(self, context: Context) -> None:
        """Handle the control messages that have arrived."""
        while self._inbox:
            sender, message = self._inbox.popleft()
            with context.refusing(sender):
                self._handlers[type(message)](sender, message, context)

    def _go(self, context: Context) -> None:
        """While leaving: cancel all own interests first, then give up the area."""
        if not self._leaving:
            return
        if self._leave_periods >= LEAVE_PERIODS or not self.graph.stands:
            self.own.give_up()
        if not self.own.leaving:
            for key in self.graph.own_keys():
                self._member.remove(key, context)

    # Periodic work

    def _renew(self, context: Context) -> None:
        """Refresh own interests, and forget those that other brokers have not refreshed for long."""
        self.own.renew(context)
        self.registry.tidy(self.holdings.concerned(), context.now)
        self._renew_pause = min(2 * self._renew_pause, self._renew_s)
        self._renew_at = context.now + self._member.jittered(self._renew_pause)

    def _renew_soon(self, context: Context) -> None:
        """Something has changed, and other brokers may have lost own interests: refresh them soon."""
        self._renew_pause = min(SOON_S, self._renew_s)
        at = context.now + self._member.jittered(self._renew_pause)
        self._renew_at = at if self._renew_at is None else min(at, self._renew_at)

    # The ring

    def _on_graph(self, actions: list[graph.Action], context: Context) -> None:
        if any(isinstance(action, graph.Moved | graph.Removed) for action in actions):
            self.holdings.settle(context)
            self._map_changed = True
        for action in actions:
            match action:
                case graph.Send():
                    context.do(Send(action.node, written(action.message, self.number)))
                case graph.Notified(sender, body) | graph.Carried(_, sender, body):
                    self._inbox.append(
                        (sender, zorder_map_messages.decode_message(body, self.keys.bits))
                    )
                case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body) as to_all):
                    if self._dedup_window.add(to_all.identity):
                        self._inbox.append(
                            (sender, zorder_map_messages.decode_message(body, self.keys.bits))
                        )
                case graph.Inserted(key):
                    self._on_inserted(key, context)
                case graph.Restored():
                    self._renew_soon(context)
                case graph.Suspected(node):
                    context.do(Suspected(node))

    def _on_inserted(self, key: bytes, context: Context) -> None:
        """Keep the newest key, and remove those from before a move."""
        for other in self.graph.own_keys():
            if other != key:
                self._member.remove(other, context)
        self.own.begin(context)
        self._confirm(context)

    def _confirm(self, context: Context) -> None:
        if self.graph.stands:
            for topic in sorted(self._advertised - self._confirmed):
                self._confirmed.add(topic)
                context.do(Advertised(topic))

    @property
    def _may_move(self) -> bool:
        return self.graph.stands and len(self.graph.own_keys()) == 1 and not self._leaving

    def _begin_move(self, point: int, context: Context) -> None:
        if self._may_move:
            self._member.insert(self.keys.key(point, self.number), context)

    # Control messages

    def _handling(self) -> Handlers:
        holdings, levelling, own = self.holdings, self._levelling, self.own
        return {
            zorder_map_messages.Register: lambda _, message, context: self._walks.on_register(
                message, context
            ),
            zorder_map_messages.Registered: lambda _, message, context: own.on_registered(
                message, context
            ),
            zorder_map_messages.Handover: self._on_handover,
            zorder_map_messages.Received: lambda sender, message, _: holdings.on_received(
                sender, message.ticket
            ),
            zorder_map_messages.Want: holdings.on_want,
            zorder_map_messages.Patience: self._on_patience,
            zorder_map_messages.RollCall: lambda _, message, context: own.on_roll_call(
                message.spans, context
            ),
            zorder_map_messages.Forget: lambda sender, message, _: self.registry.forget_before(
                sender, message.version
            ),
            zorder_map_messages.Question: self._on_question,
            zorder_map_messages.Sample: lambda _, message, context: levelling.on_sample(
                message, context
            ),
            zorder_map_messages.Load: levelling.on_load,
            zorder_map_messages.Relieve: self._on_relieve,
            zorder_map_messages.Offer: self._on_offer,
            zorder_map_messages.Cut: self._on_cut,
        }

    def _on_handover(
        self, sender: int, message: zorder_map_messages.Handover, context: Context
    ) -> None:
        self.holdings.on_handover(sender, message, context)
        self._map_changed = True

    def _on_patience(
        self, sender: int, message: zorder_map_messages.Patience, context: Context
    ) -> None:
        self.holdings.on_patience(sender, message, context)
        self._map_changed = True

    def _on_relieve(self, _: int, message: zorder_map_messages.Relieve, context: Context) -> None:
        if self._may_move:
            self._levelling.on_relieve(message, context)

    def _on_offer(self, sender: int, _: zorder_map_messages.Offer, context: Context) -> None:
        if self._may_move:
            first = self.keys.start(self.graph.own_keys()[0])
            self._levelling.on_offer(sender, first, self.holdings.served, context)

    def _on_cut(self, sender: int, message: zorder_map_messages.Cut, context: Context) -> None:
        point = self._levelling.on_cut(sender, message, context.now)
        if point is not None:
            self._begin_move(point, context)

    def _on_question(
        self, sender: int, message: zorder_map_messages.Question, context: Context
    ) -> None:
        if sender != self.number and parse(message.text).topic in self._advertised:
            context.do(Asked(sender, message.text, message.payload))
