"""A broker's own interests, and how they come to all who own points at which they must be known.

Each stretch of an interest is walked along: carried to the owner of its first point, which notes the interest and
passes it on to the owner of the first point beyond its own, and so on to the end, from where the answer comes. As every
handover of points takes along what is known there (`ownership`), an interest is known at all its points from then on,
wherever they go. Walks are repeated until they are answered, and again from time to time, more and more seldom. If a
broker on the way serves already and did not know the interest, something may have been missed (Restored).
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

LONGEST_WAIT = 16  # periods between two tries of a walk


@dataclass(slots=True)
class _Walk:
    """Along one stretch; not answered yet."""

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
        """Whether others may not know yet that something is wanted no more."""
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
        """Others will find out by themselves."""
        self._own.clear()

    def begin(self, context: Context) -> None:
        """The way is open: try everything that is not answered."""
        for own in self._own.values():
            for stretch in own.walks:
                self._walk(own, stretch, context)

    def renew(self, context: Context) -> None:
        """All that is wanted is said again."""
        for own in self._own.values():
            if own.wanted:
                self._walk_all(own, context)

    def on_roll_call(self, spans: Spans, context: Context) -> None:
        """Somebody must learn anew what is wanted at these points."""
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
        """A period has gone by."""
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


# Walks of other brokers' interests through this one: noted here, passed on to the next owner, answered at the end.
#
# A walk that comes to points that are owned here but not handed over yet waits for them.


MOST_WAITING = 1024  # walks; more are not taken, and begun again by those who want them


class Walks:
    """One broker's part."""

    def __init__(self, member: Member, holdings: Holdings, registry: Registry) -> None:
        self._member = member
        self._holdings = holdings
        self._registry = registry
        self._waiting: dict[Register, None] = {}

    def __bool__(self) -> bool:
        """Whether one waits."""
        return bool(self._waiting)

    def on_register(self, walk: Register, context: Context) -> None:
        """It has come to its next point; WireError if it is about nothing that can be wanted."""
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
        """The map may have changed."""
        waiting, self._waiting = self._waiting, {}
        for walk in waiting:
            self._member.carry(walk, context)
