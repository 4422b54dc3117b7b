"""A broker's guests that want areas: what it costs to find those to whom a publication is handed out.

Every publication that comes to a broker is compared with the interests of its own guests (`nodes.overlay.mesh.guests`),
one after the other; guests that want the whole topic share one interest, whoever wants an area has one of its own.
"""

import time
from collections.abc import Sequence
from random import Random

from nodes.overlay.interests import Interest
from nodes.overlay.mesh.guests import Subscriptions
from nodes.overlay.zorder_map.boxes import Box
from nodes.wire import MAX_COORDINATE, Kind, Message

TOPIC = "alerts"
GUESTS = (10, 100, 1_000)  # of one broker
LEVELS = (1, 3, 4)  # the lowest that they want
REACH = 1 / 20  # from an area's middle to its sides, as a share of the space's side
ROUNDS = 5  # the fastest counts: others may use the machine


def with_areas(guests: int, seed: int) -> Subscriptions:
    """Each wants what happens around a place of its own, from some level on."""
    random, found = Random(f"{seed} {guests}"), Subscriptions(by_area=False)
    reach = round(REACH * MAX_COORDINATE)
    for number in range(guests):
        middle = _place(random)
        box = Box(
            tuple(max(0, at - reach) for at in middle),
            tuple(min(MAX_COORDINATE, at + reach) for at in middle),
        )
        found.add(f"siren-{number}", Interest(TOPIC, box, random.choice(LEVELS)).text)
    return found


def with_topic(guests: int) -> Subscriptions:
    """Each wants the whole topic."""
    found = Subscriptions(by_area=False)
    for number in range(guests):
        found.add(f"siren-{number}", TOPIC)
    return found


def alerts(count: int, seed: int) -> list[Message]:
    """Publications anywhere, of all levels."""
    random = Random(seed)
    return [
        Message(Kind.PUBLISH, random.randint(1, 5), topic=TOPIC, place=_place(random))
        for _ in range(count)
    ]


def seconds_each(subscriptions: Subscriptions, messages: Sequence[Message]) -> float:
    """Processor time to find who wants one of them."""
    return min(_timed(subscriptions, messages) for _ in range(ROUNDS)) / len(messages)


def _timed(subscriptions: Subscriptions, messages: Sequence[Message]) -> float:
    before = time.process_time()
    for message in messages:
        subscriptions.wanting(message)
    return time.process_time() - before


def _place(random: Random) -> tuple[int, int]:
    return random.randrange(MAX_COORDINATE + 1), random.randrange(MAX_COORDINATE + 1)
