"""Keys of those who collect: a topic's publishers by their period, its subscriber at the end (Kawakami 2016).

They are the topic's keys (`tbps.keys`) with the period before the node's number:

    topic, a zero byte, the role publisher, the period in 4 bytes, the number of the node in 4 bytes

`descending` has the periods' complements, so that long ones come first and short ones stand next to the subscriber.
"""

from enum import StrEnum

from nodes.overlay.tbps.keys import Role, edge, topic_key
from nodes.wire import WireError

LONGEST_PERIOD = 0xFFFFFFFF


class Order(StrEnum):
    """How publishers stand on the line, seen from its beginning; the subscriber is at its end."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


def publisher_key(topic: str, period: int, number: int, order: Order) -> bytes:
    """The key of this node; `period` in any unit that all of the topic share."""
    if not 1 <= period <= LONGEST_PERIOD:
        raise WireError(f"a period of {period} fits no key; 1 to {LONGEST_PERIOD} do")
    ranked = period if order is Order.ASCENDING else LONGEST_PERIOD - period
    return edge(topic, Role.PUBLISHER) + ranked.to_bytes(4) + number.to_bytes(4)


def subscriber_key(topic: str, number: int) -> bytes:
    """The key of the node that collects."""
    return topic_key(topic, Role.SUBSCRIBER, number)
