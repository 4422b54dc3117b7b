"""How many hops a reading takes to its collector: brute force, from membership vectors and periods alone."""

from collections.abc import Mapping
from itertools import pairwise

from nodes.overlay.collection.rules import Order, Way, publisher_key, subscriber_key
from nodes.overlay.topics.keys import node_of


def expected_hops(
    topic: str, periods: Mapping[int, float], collector: int, vectors: Mapping[int, int], way: Way
) -> dict[int, int]:
    """Broker -> hops between brokers; `periods` are in seconds."""
    order = Order.ASCENDING if way is Way.PUSH_ASCENDING else Order.DESCENDING
    keys = [
        publisher_key(topic, round(period * 1000), number, order)
        for number, period in periods.items()
    ]
    numbers = [node_of(key) for key in (*sorted(keys), subscriber_key(topic, collector))]
    bits = {number: format(vectors[number], "064b") for number in numbers}
    reach: dict[int, set[int]] = {number: set() for number in numbers}
    for level in range(1 if way is Way.CHAIN else 65):
        for prefix in {bits[number][:level] for number in numbers}:
            members = [number for number in numbers if bits[number].startswith(prefix)]
            for left, right in pairwise(members):
                reach[left].add(right)
    hops = {collector: 0}
    for number in reversed(numbers[:-1]):
        furthest = max(reach[number], key=numbers.index)
        hops[number] = 1 if way is Way.SERVER else 1 + hops[furthest]
    return hops
