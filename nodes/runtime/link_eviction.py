"""Which links between brokers are closed in order, if there are more than a broker keeps. Pure; `now` is passed in.

Only one that rests: nothing waits for it or is under way, either way; for `UNUSED_S` nothing but signs of life went
over it; and no publication with custody that did waits for its answer. So a broker that is busy with more others than
it keeps links to keeps them all until it is less busy: to close a link that is in use and make it again costs more, of
the time of alerts, too, than to keep it.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from nodes.protocol.wire import CUSTODY, Kind, Message

UNUSED_S = 2.0
ANSWER_S = 60.0  # a copy that was not answered for so long is sent again, over whichever link there is then


class LinkActivity:
    """What has gone over a link, either way."""

    def __init__(self, now: float) -> None:
        self.last = now
        self._unanswered = 0

    def note(self, message: Message, now: float) -> None:
        """A message came, or was queued; signs of life are no use."""
        if message.kind is Kind.BEAT:
            return
        self.last = now
        if message.kind is Kind.PUBLISH and message.flags & CUSTODY:
            self._unanswered += 1
        elif message.kind is Kind.TAKEN:
            self._unanswered = max(0, self._unanswered - 1)

    def is_unused(self, now: float) -> bool:
        """Whether it was not used lately, and no answer is due."""
        return now - self.last > (ANSWER_S if self._unanswered else UNUSED_S)


class EvictableLink(Protocol):
    """A link between brokers."""

    activity: LinkActivity

    @property
    def idle(self) -> bool:
        """Whether nothing waits here or is under way to the peer."""

    @property
    def receiving(self) -> bool:
        """Whether a message is coming in, and not all of it is here."""

    @property
    def closing_orderly(self) -> bool:
        """Whether it is being closed in order already."""


AnyLink = TypeVar("AnyLink", bound=EvictableLink)


def links_to_evict(links: Iterable[AnyLink], most: int, now: float) -> tuple[list[AnyLink], int]:
    """Those to close, unused for longest first; and how many are still too many then."""
    staying = [link for link in links if not link.closing_orderly]
    too_many = max(0, len(staying) - most)
    if not too_many:
        return [], 0
    unused = [link for link in staying if _is_unused(link, now)]
    chosen = sorted(unused, key=lambda link: link.activity.last)[:too_many]
    return chosen, too_many - len(chosen)


def _is_unused(link: EvictableLink, now: float) -> bool:
    return link.activity.is_unused(now) and link.idle and not link.receiving
