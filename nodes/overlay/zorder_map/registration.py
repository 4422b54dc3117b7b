"""A broker's own interests, and how they are registered with all owners of their points.

A walk goes along each interval of an interest. It is routed to the owner of the first point, which registers the
interest and forwards the walk to the owner of the first point beyond its own, and so on. The last owner answers. As
every handover of points includes the interests registered there (`ownership`), an interest is known at all its points
from then on, wherever they go. Walks are repeated until they are answered, and then periodically, less and less often.
If a broker on the walk serves already and did not know the interest, publications may have been missed (Restored).
"""

from dataclasses import dataclass, field, replace

from nodes.overlay.topics.base import Restored, Subscribed
from nodes.overlay.topics.topic_graph import Context
from nodes.overlay.zorder_map.keys import CurveSpace
from nodes.overlay.zorder_map.member import Member
from nodes.overlay.zorder_map.ownership import Holdings
from nodes.overlay.zorder_map.registry import Registry
from nodes.protocol.interests import Interest
from nodes.protocol.regions import Interval, Spans
from nodes.protocol.wire import Message
from nodes.protocol.zorder_map_messages import Entry, Register, Registered

LONGEST_WAIT = 16  # periods between two attempts of a walk


@dataclass(slots=True)
class _Walk:
    """A walk along one interval; not answered yet."""

    wait: int = 2  # periods, the next time twice as many
    left: int = 2


@dataclass(slots=True)
class _OwnInterest:
    """One interest of this broker."""

    interest: Interest
    text: str
    version: int
    wanted: bool = True
    confirmed: bool = False
    walks: dict[Interval, _Walk] = field(default_factory=dict)


class OwnInterests:
    """All interests of a broker."""

    def __init__(self, member: Member, space: CurveSpace) -> None:
        self._member = member
        self._space = space
        self._own: dict[str, _OwnInterest] = {}

    def __len__(self) -> int:
        return len(self._own)

    @property
    def busy(self) -> bool:
        """Whether walks are not answered."""
        return any(own.walks for own in self._own.values())

    @property
    def leaving(self) -> bool:
        """Whether other brokers may still have registrations of cancelled interests."""
        return any(not own.wanted for own in self._own.values())

    def wants(self, message: Message) -> bool:
        return any(own.wanted and own.interest.wants(message) for own in self._own.values())

    def subscribe(self, interest: Interest, context: Context) -> None:
        own = self._own.get(interest.text)
        if own is not None and own.wanted:
            if own.confirmed:
                context.do(Subscribed(own.text))
            return
        self._own[interest.text] = _OwnInterest(interest, interest.text, self._member.next_number())
        self._walk_all(self._own[interest.text], context)

    def unsubscribe(self, text: str, context: Context) -> None:
        own = self._own.get(text)
        if own is not None and own.wanted:
            own.wanted, own.confirmed, own.version = False, False, self._member.next_number()
            self._walk_all(own, context)

    def leave(self, context: Context) -> None:
        for text in list(self._own):
            self.unsubscribe(text, context)

    def give_up(self) -> None:
        """Stop cancelling: registrations at other brokers expire."""
        self._own.clear()

    def begin(self, context: Context) -> None:
        """The node has joined: repeat all walks that are not answered."""
        for own in self._own.values():
            for stretch in own.walks:
                self._walk(own, stretch, context)

    def renew(self, context: Context) -> None:
        """Register all own interests again."""
        for own in self._own.values():
            if own.wanted:
                self._walk_all(own, context)

    def on_roll_call(self, spans: Spans, context: Context) -> None:
        """Another broker has lost the registrations at these points: register own interests there again."""
        for own in self._own.values():
            for stretch in (self._space.spans(own.interest) & spans) if own.wanted else ():
                own.walks[stretch] = _Walk()
                self._walk(own, stretch, context)

    def on_registered(self, message: Registered, context: Context) -> None:
        for own in list(self._own.values()):
            if own.version != message.version:
                continue
            if own.walks.pop((message.begin, message.last), None) is None:
                return
            if message.late and own.confirmed:
                context.do(Restored(own.text))
            if own.walks:
                return
            if not own.wanted:
                del self._own[own.text]
            elif not own.confirmed:
                own.confirmed = True
                context.do(Subscribed(own.text))

    def tick(self, context: Context) -> None:
        """A period has passed."""
        for own in self._own.values():
            for stretch, walk in own.walks.items():
                walk.left -= 1
                if walk.left <= 0:
                    walk.wait = min(2 * walk.wait, LONGEST_WAIT)
                    walk.left = walk.wait
                    self._walk(own, stretch, context)

    def _walk_all(self, own: _OwnInterest, context: Context) -> None:
        own.walks = {stretch: _Walk() for stretch in self._space.spans(own.interest)}
        for stretch in list(own.walks):
            self._walk(own, stretch, context)

    def _walk(self, own: _OwnInterest, stretch: Interval, context: Context) -> None:
        entry = Entry(self._member.number, own.version, own.wanted, own.text)
        self._member.carry(Register(stretch[0], *stretch, False, entry), context)


# Walks of other brokers' interests: registered here, forwarded to the next owner, answered at the end.
#
# A walk waits if it reaches points that are owned here but not handed over yet.


MOST_WAITING = 1024  # walks; more are dropped, and their brokers begin them again


class Walks:
    """The walks at one broker."""

    def __init__(self, member: Member, holdings: Holdings, registry: Registry) -> None:
        self._member = member
        self._holdings = holdings
        self._registry = registry
        self._waiting: dict[Register, None] = {}

    def __bool__(self) -> bool:
        """Whether a walk waits."""
        return bool(self._waiting)

    def on_register(self, walk: Register, context: Context) -> None:
        """A walk has reached its next point; WireError if its text is no valid interest."""
        stretch = self._holdings.accepts.stretch_at(walk.first)
        if stretch is None:
            if len(self._waiting) < MOST_WAITING:
                self._waiting[walk] = None
            return
        news = self._registry.note(walk.entry, context.now)
        late = walk.late or (news and walk.first in self._holdings.served)
        if walk.last <= stretch[1]:
            entry = walk.entry
            answer = Registered(walk.begin, walk.last, entry.version, late)
            self._member.notify(entry.broker, answer, context)
        else:
            self._member.carry(replace(walk, first=stretch[1] + 1, late=late), context)

    def go_on(self, context: Context) -> None:
        """Continue the walks that wait: the map may have changed."""
        waiting, self._waiting = self._waiting, {}
        for walk in waiting:
            self._member.carry(walk, context)
