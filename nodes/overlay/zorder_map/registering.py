"""A broker's own interests, and how they come to all who own points at which they must be known.

Each stretch of an interest is walked along: carried to the owner of its first point, which notes the interest and
passes it on to the owner of the first point beyond its own, and so on to the end, from where the answer comes. As every
handover of points takes along what is known there (`holdings`), an interest is known at all its points from then on,
wherever they go. Walks are repeated until they are answered, and again from time to time, more and more seldom. If a
broker on the way serves already and did not know the interest, something may have been missed (Restored).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodes.overlay.interests import Interest
from nodes.overlay.tbps.base import Action, Restored, Subscribed
from nodes.overlay.zorder_map.boxes import Interval
from nodes.overlay.zorder_map.ground import Ground
from nodes.overlay.zorder_map.spans import Spans
from nodes.overlay.zorder_map.words import Entry, Register, Registered
from nodes.wire import Message

LONGEST_WAIT = 16  # periods between two tries of a walk


@dataclass(slots=True)
class _Walk:
    """Along one stretch; not answered yet."""

    wait: int = 2  # periods, the next time twice as many
    left: int = 2


@dataclass(slots=True)
class _Own:
    """One interest of this broker."""

    interest: Interest
    text: str
    version: int
    wanted: bool = True
    confirmed: bool = False
    walks: dict[Interval, _Walk] = field(default_factory=dict)


class Registering:
    """`version` makes a new one, `carry` begins or goes on with a walk, `out` takes what is to be told."""

    def __init__(
        self,
        number: int,
        ground: Ground,
        version: Callable[[], int],
        carry: Callable[[Register], None],
        out: Callable[[Action], None],
    ) -> None:
        self._number = number
        self._ground = ground
        self._version = version
        self._carry = carry
        self._out = out
        self._own: dict[str, _Own] = {}

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

    def subscribe(self, interest: Interest) -> None:
        own = self._own.get(interest.text)
        if own is not None and own.wanted:
            if own.confirmed:
                self._out(Subscribed(own.text))
            return
        self._own[interest.text] = _Own(interest, interest.text, self._version())
        self._walk_all(self._own[interest.text])

    def unsubscribe(self, text: str) -> None:
        own = self._own.get(text)
        if own is not None and own.wanted:
            own.wanted, own.confirmed, own.version = False, False, self._version()
            self._walk_all(own)

    def leave(self) -> None:
        for text in list(self._own):
            self.unsubscribe(text)

    def give_up(self) -> None:
        """Others will find out by themselves."""
        self._own.clear()

    def begin(self) -> None:
        """The way is open: try everything that is not answered."""
        for own in self._own.values():
            for stretch in own.walks:
                self._walk(own, stretch)

    def renew(self) -> None:
        """All that is wanted is said again."""
        for own in self._own.values():
            if own.wanted:
                self._walk_all(own)

    def on_roll_call(self, spans: Spans) -> None:
        """Somebody must learn anew what is wanted at these points."""
        for own in self._own.values():
            for stretch in (self._ground.spans(own.interest) & spans) if own.wanted else ():
                own.walks[stretch] = _Walk()
                self._walk(own, stretch)

    def on_registered(self, word: Registered) -> None:
        for own in list(self._own.values()):
            if own.version != word.version:
                continue
            if own.walks.pop((word.begin, word.last), None) is None:
                return
            if word.late and own.confirmed:
                self._out(Restored(own.text))
            if own.walks:
                return
            if not own.wanted:
                del self._own[own.text]
            elif not own.confirmed:
                own.confirmed = True
                self._out(Subscribed(own.text))

    def tick(self) -> None:
        """A period has gone by."""
        for own in self._own.values():
            for stretch, walk in own.walks.items():
                walk.left -= 1
                if walk.left <= 0:
                    walk.wait = min(2 * walk.wait, LONGEST_WAIT)
                    walk.left = walk.wait
                    self._walk(own, stretch)

    def _walk_all(self, own: _Own) -> None:
        own.walks = {stretch: _Walk() for stretch in self._ground.spans(own.interest)}
        for stretch in list(own.walks):
            self._walk(own, stretch)

    def _walk(self, own: _Own, stretch: Interval) -> None:
        entry = Entry(self._number, own.version, own.wanted, own.text)
        self._carry(Register(stretch[0], *stretch, False, entry))
