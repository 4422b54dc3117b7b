"""The next node for data on its way to the subscriber: one rule for each method (Kawakami 2016).

    server   to the subscriber itself
    chain    to the nearest node on the way, so that the data passes every node
    push     to the farthest node on the way that a link reaches, not beyond the subscriber (highest level first)

These are pure functions of keys: a node passes its present links, an experiment those that the node should have. Every
step continues in the direction of the one before or goes straight to the subscriber, so data never returns to a node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nodes.overlay.topics.keys import Role, edge, topic_key
from nodes.parameters import ParameterError, one_of, seconds
from nodes.protocol.wire import WireError


class Method(StrEnum):
    """How data reaches the subscriber."""

    SERVER = "server"
    CHAIN = "chain"
    PUSH = "push"


class Lists(StrEnum):
    """The shape of the Skip Graph's lists."""

    LINE = "line"  # left of the subscriber data goes right, right of it left
    RING = "ring"  # the ends of a list are neighbours; data may go round the end


@dataclass(frozen=True, slots=True)
class Rule:
    """How the nodes of one collection forward data; all of them must have the same rule."""

    method: Method
    lists: Lists = Lists.LINE
    turn: bytes | None = (
        None  # in a ring: keys before it, going right from the subscriber, send data left
    )

    def next_stop(self, me: bytes, goal: bytes, links: Iterable[bytes]) -> bytes | None:
        """The key to which `me` forwards data for `goal`; None: the data has arrived, or no link leads on.

        `links`: the keys of its neighbours in any order, of its topic only, because other nodes cannot aggregate its
        data.
        """
        if me == goal or self.method is Method.SERVER:
            return None if me == goal else goal
        known = set(links)
        if goal in known and self.method is Method.PUSH:
            return goal
        rightwards = self.goes_right(me, goal)
        here = _round_from(goal, me)
        onward = [
            key for key in known - {me, goal} if (_round_from(goal, key) > here) is rightwards
        ]
        if not onward:
            return goal if goal in known else None
        to_the_last = rightwards is (self.method is Method.PUSH)
        choose = max if to_the_last else min
        return choose(onward, key=lambda key: _round_from(goal, key))

    def goes_right(self, me: bytes, goal: bytes) -> bool:
        """Whether data goes from here to larger keys; in a ring also across its end."""
        if self.lists is Lists.LINE:
            return me < goal
        return self.turn is None or _round_from(goal, me) >= _round_from(goal, self.turn)


def _round_from(goal: bytes, key: bytes) -> tuple[bool, bytes]:
    """The position of a key when going right from the goal, across the end of the ring."""
    return key < goal, key


# Keys of a collection: a topic's publishers by their period, its subscriber at the end (Kawakami 2016).
#
# They are the topic's keys (`topics.keys`) with the period before the node's number:
#
#     topic, a zero byte, the role publisher, the period in 4 bytes, the number of the node in 4 bytes
#
# `descending` has the periods' complements, so that long periods come first and short ones are next to the subscriber.


LONGEST_PERIOD = 0xFFFFFFFF


class Order(StrEnum):
    """The order of the publishers' keys; the subscriber's key is behind all of them."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


def publisher_key(topic: str, period: int, number: int, order: Order) -> bytes:
    """The key of a publisher; `period` in any unit that all nodes of the topic share."""
    if not 1 <= period <= LONGEST_PERIOD:
        raise WireError(f"a period of {period} fits no key; 1 to {LONGEST_PERIOD} do")
    ranked = period if order is Order.ASCENDING else LONGEST_PERIOD - period
    return edge(topic, Role.PUBLISHER) + ranked.to_bytes(4) + number.to_bytes(4)


def subscriber_key(topic: str, number: int) -> bytes:
    """The key of the collector."""
    return topic_key(topic, Role.SUBSCRIBER, number)


PARAMETERS = ("way", "aggregate", "wait_s", "pull_s")
WAIT_S = 0.5
PULL_S = 1.0
LONGEST_S = 3600.0


class Way(StrEnum):
    """How readings reach the collector."""

    PUSH_DESCENDING = (
        "push-descending"  # over the farthest link, short periods next to the collector
    )
    PUSH_ASCENDING = "push-ascending"  # the same, long periods next to it
    CHAIN = "chain"  # from each publisher to the next, long periods first
    SERVER = "server"  # from each publisher to the collector itself
    PULL = "pull"  # the collector requests them by a multicast; answers return along its tree


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one node; all nodes of a lab have the same."""

    way: Way = Way.PUSH_DESCENDING
    aggregate: bool = True  # publications to the same node leave as one message
    wait_s: float = WAIT_S  # how long a node waits for readings of others at most; 0: not at all
    pull_s: float = PULL_S  # between two requests of a collector

    @property
    def order(self) -> Order:
        """The order of the publishers' keys."""
        ascending = self.way is Way.PUSH_ASCENDING
        return Order.ASCENDING if ascending else Order.DESCENDING

    @property
    def rule(self) -> Rule:
        """The rule for readings; also for those to a server that is not known yet, or that sends no requests."""
        return Rule(Method.CHAIN if self.way is Way.CHAIN else Method.PUSH)


def settings(method: str, parameters: Mapping[str, Any]) -> Settings:
    """The settings in a method's parameters, without the other parameters; ParameterError if a value is wrong."""
    aggregate = parameters.get("aggregate", True)
    if not isinstance(aggregate, bool):
        raise ParameterError(
            "aggregate", f"{method}'s aggregate is {aggregate!r}; it takes true or false"
        )
    return Settings(
        Way(one_of(method, parameters, "way", tuple(Way))),
        aggregate,
        seconds(method, parameters, "wait_s", WAIT_S, LONGEST_S, zero=True),
        seconds(method, parameters, "pull_s", PULL_S, LONGEST_S),
    )
