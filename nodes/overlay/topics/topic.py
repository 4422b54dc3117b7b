"""The state of a topic at one node: roles, keys, whether the node sends, and publications that cannot be sent yet."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from nodes.overlay.topics.keys import Role, topic_key
from nodes.protocol.wire import CUSTODY, Message

MOST_WAITING = 64  # publications without custody, of a topic whose key is not inserted yet
MOST_HELD = 64  # publications without custody, of a topic without subscribers


class Entry(NamedTuple):
    """A publication, and since when it waits."""

    since: float
    message: Message

    @property
    def has_custody(self) -> bool:
        return bool(self.message.flags & CUSTODY)


class Waiting:
    """Publications of one topic that cannot be sent yet, in their order.

    If there are too many without custody, the oldest are dropped. None with custody is dropped. The layer above, which
    takes custody, limits their number.
    """

    def __init__(self, most: int) -> None:
        self._most = most  # without custody
        self._entries: deque[Entry] = deque()
        self._plain = 0
        self.last_custody = -inf  # when the last one with custody came
        self._newest: dict[int, float] = {}  # message id -> since when it waits

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def since(self, message_id: int) -> float:
        """Since when the publication with this id waits; -inf, if it does not."""
        return self._newest.get(message_id, -inf)

    def append(self, message: Message, now: float) -> None:
        entry = Entry(now, message)
        self._entries.append(entry)
        self._newest[message.message_id] = now
        if entry.has_custody:
            self.last_custody = now
        else:
            self._plain += 1
        if self._plain > self._most:
            oldest = next(at for at, each in enumerate(self._entries) if not each.has_custody)
            self._left(self._entries[oldest])
            del self._entries[oldest]

    def popleft(self) -> Entry:
        """Remove and return the oldest; IndexError if there is none."""
        entry = self._entries.popleft()
        self._left(entry)
        return entry

    def forget(self, until: float, with_custody_until: float) -> None:
        """Drop those that have waited since then, or longer; an older one that must stay keeps the others."""
        while self._entries:
            oldest = self._entries[0]
            if oldest.since > (with_custody_until if oldest.has_custody else until):
                return
            self.popleft()

    def clear(self) -> None:
        self._entries.clear()
        self._newest.clear()
        self._plain = 0

    def _left(self, entry: Entry) -> None:
        self._plain -= not entry.has_custody
        if self._newest.get(entry.message.message_id) == entry.since:
            del self._newest[entry.message.message_id]


@dataclass(slots=True)
class Flow:
    """Whether a publisher of a topic sends, and the publications that it withholds."""

    going: bool = True
    sure: bool = False  # whether the state is confirmed, by a message or by the own neighbour
    held: Waiting = field(default_factory=lambda: Waiting(MOST_HELD))
    unwanted: float = -inf  # no subscriber wants publications withheld until then
    asked_at: float = -inf  # when the rendezvous point was asked last


@dataclass(slots=True)
class Topic:
    """A topic at one node."""

    name: str
    advertised: bool = False
    subscribed: bool = False
    keys: dict[Role, bytes] = field(default_factory=dict)  # inserted
    waiting: Waiting = field(default_factory=lambda: Waiting(MOST_WAITING))
    flow: Flow = field(default_factory=Flow)

    @property
    def role(self) -> Role | None:
        """The role whose key the node should have."""
        if self.subscribed:
            return Role.SUBSCRIBER
        return Role.PUBLISHER if self.advertised else None

    def key(self, role: Role, number: int) -> bytes:
        """The key of the node of this number in this role; a method may order publishers differently."""
        return topic_key(self.name, role, number)

    def wanted_key(self, number: int) -> bytes | None:
        """The key that the node of this number should have now."""
        return None if self.role is None else self.key(self.role, number)
