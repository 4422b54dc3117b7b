"""Link eviction: which links to other brokers a broker closes when it has too many. Pure; `now` is passed in.

It closes only unused links: nothing is queued or under way in either direction, only heartbeats went over the link for
`UNUSED_S`, and no publication with custody waits for its acknowledgement. So a busy broker may have more links than its
maximum for a while: closing a link in use and making it again would cost more, and would delay alerts.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from nodes.protocol.wire import CUSTODY, Kind, Message

UNUSED_S = 2.0
ANSWER_S = (
    60.0  # a copy without acknowledgement is sent again after so long, perhaps over another link
)


class LinkActivity:
    """When messages last went over a link, in either direction."""

    def __init__(self, now: float) -> None:
        self.last = now
        self._unanswered = 0

    def note(self, message: Message, now: float) -> None:
        """A message came or was queued; heartbeats do not count."""
        if message.kind is Kind.HEARTBEAT:
            return
        self.last = now
        if message.kind is Kind.PUBLISH and message.flags & CUSTODY:
            self._unanswered += 1
        elif message.kind is Kind.ACK:
            self._unanswered = max(0, self._unanswered - 1)

    def is_unused(self, now: float) -> bool:
        """Whether the link was not used lately, and no acknowledgement is due."""
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
        """Whether this side is closing it in order already."""


AnyLink = TypeVar("AnyLink", bound=EvictableLink)


def links_to_evict(links: Iterable[AnyLink], most: int, now: float) -> tuple[list[AnyLink], int]:
    """The links to close, the longest unused first; and how many are still too many then."""
    staying = [link for link in links if not link.closing_orderly]
    too_many = max(0, len(staying) - most)
    if not too_many:
        return [], 0
    unused = [link for link in staying if _is_unused(link, now)]
    chosen = sorted(unused, key=lambda link: link.activity.last)[:too_many]
    return chosen, too_many - len(chosen)


def _is_unused(link: EvictableLink, now: float) -> bool:
    return link.activity.is_unused(now) and link.idle and not link.receiving
