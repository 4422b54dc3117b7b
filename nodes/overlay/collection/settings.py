"""How a collection is made: the parameters of its method, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nodes.overlay.collection.keys import Order
from nodes.overlay.collection.rules import Method, Rule
from nodes.parameters import ParameterError, one_of, seconds

PARAMETERS = ("way", "aggregate", "wait_s", "pull_s")
WAIT_S = 0.5
PULL_S = 1.0
LONGEST_S = 3600.0


class Way(StrEnum):
    """How readings get to the collector."""

    PUSH_DESCENDING = (
        "push-descending"  # over the furthest link, short periods next to the collector
    )
    PUSH_ASCENDING = "push-ascending"  # the same, long periods next to it
    CHAIN = "chain"  # from each to the next, long periods first
    SERVER = "server"  # from each to the collector itself
    PULL = "pull"  # the collector asks all of them by a multicast, and answers come back along its tree


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one node; all of a lab have the same."""

    way: Way = Way.PUSH_DESCENDING
    aggregate: bool = True  # publications to the same node leave as one
    wait_s: float = WAIT_S  # so long a node waits for others' readings at most; 0: not at all
    pull_s: float = PULL_S  # so often a collector asks

    @property
    def order(self) -> Order:
        """In which publishers stand."""
        ascending = self.way is Way.PUSH_ASCENDING
        return Order.ASCENDING if ascending else Order.DESCENDING

    @property
    def rule(self) -> Rule:
        """By which readings find their way; also to a server that is not known yet, or one that does not ask."""
        return Rule(Method.CHAIN if self.way is Way.CHAIN else Method.PUSH)


def settings(method: str, parameters: Mapping[str, Any]) -> Settings:
    """From a method's parameters, of which the others are left alone; ParameterError if one is wrong."""
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
