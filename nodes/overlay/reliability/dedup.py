"""Dedup window: the newest counters of each origin, as the bits of one number.

Ids come from `wire.message_id`: origin above, counter below. Counters of one origin arrive almost in order, so a
window of the newest 1,024 recognises repetitions (as IPsec does, RFC 4303, 3.4.3). An id from before the window counts
as new: it is better to deliver an alert twice than to lose it. The window has a maximum number of origins, so that
invented origins cannot fill the memory; it forgets the origin whose last message is the oldest.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

WINDOW = 1024
MAX_ORIGINS = 4096  # about 1.5 MiB


class DedupWindow:
    """The message ids that this node has received."""

    def __init__(self) -> None:
        # origin -> newest counter, bit i: newest - i; the origin of the newest message is the last entry
        self._origins: OrderedDict[int, tuple[int, int]] = OrderedDict()

    @property
    def origins(self) -> int:
        """How many origins are remembered."""
        return len(self._origins)

    def add(self, message_id: int) -> bool:
        """Record the id; return whether it is new."""
        origin, counter = message_id >> 32, message_id & 0xFFFFFFFF
        newest, bits = self._origins.get(origin, (counter, 0))
        if counter > newest:
            bits = (bits << min(counter - newest, WINDOW)) & ((1 << WINDOW) - 1)
            newest = counter
        age = newest - counter
        if age >= WINDOW:
            return True
        new = not bits >> age & 1
        self._origins[origin] = (newest, bits | 1 << age)
        self._origins.move_to_end(origin)
        if len(self._origins) > MAX_ORIGINS:
            self._origins.popitem(last=False)
        return new


# Publications with custody are recorded one by one, because one may come again after thousands of others, when the
# dedup window has moved on. The node also reports these records to its broker, which then sends what is missing.


MAX_RECENT_DELIVERIES = 8192


class DeliveryRecord(NamedTuple):
    """A publication that was delivered to the application."""

    message_id: int
    topic: str
    level: int
    at: float


class RecentDeliveries:
    """The newest deliveries with custody."""

    def __init__(self) -> None:
        self._deliveries: OrderedDict[int, DeliveryRecord] = OrderedDict()

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._deliveries

    def add(self, delivery: DeliveryRecord) -> None:
        """Record it as the newest."""
        self._deliveries[delivery.message_id] = delivery
        self._deliveries.move_to_end(delivery.message_id)
        if len(self._deliveries) > MAX_RECENT_DELIVERIES:
            self._deliveries.popitem(last=False)

    def since(self, when: float, topics: Iterable[str]) -> dict[str, list[int]]:
        """The ids of what was delivered on each of these topics since then, the newest first."""
        found: dict[str, list[int]] = {topic: [] for topic in topics}
        for delivery in reversed(self._deliveries.values()):
            if delivery.at >= when and delivery.topic in found:
                found[delivery.topic].append(delivery.message_id)
        return found
