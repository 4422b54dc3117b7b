"""The parameters of the map, as they come from the topology file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodes.overlay.skipgraph.node import IDLE_PERIOD_S, PERIOD_S
from nodes.overlay.zorder_map.keys import STARTS
from nodes.parameters import ParameterError, check_known, one_of, seconds, whole_number
from nodes.protocol.wire import MAX_DIMENSIONS

NEVER_S = 1e9  # the longest period
CUTS = ("load", "area")  # how a heavy broker cuts its area in two


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a map; the same for all of its brokers."""

    period_s: float = PERIOD_S
    idle_period_s: float = IDLE_PERIOD_S
    dimensions: int = 2  # of the space: the first ones, latitude and longitude
    stretches: int = 8  # intervals on which an interest with a box is registered, at most
    start: str = STARTS[0]  # how brokers choose the first point of their area
    renew_s: float = 240.0  # between two refreshes of an interest where nothing changes
    recover_s: float = 3.0  # for registering interests again after a crash
    level_s: float = 30.0  # between two samples, and the window of the load; 0: no levelling
    k: int = 5  # brokers in a sample
    e: float = 0.5  # share of the mean by which a heavy or light broker differs from it
    cut: str = CUTS[0]

    @classmethod
    def of(cls, method: str, given: Mapping[str, Any]) -> "Settings":
        """Read the parameters of a method; ParameterError if one is unknown or wrong."""
        check_known(method, given, tuple(cls.__dataclass_fields__))

        def span(name: str, default: float) -> float:
            return seconds(method, given, name, default, NEVER_S)

        usual = cls()
        return cls(
            span("period_s", usual.period_s),
            span("idle_period_s", usual.idle_period_s),
            whole_number(method, given, "dimensions", usual.dimensions, 1, MAX_DIMENSIONS),
            whole_number(method, given, "stretches", usual.stretches, 1, 256),
            one_of(method, given, "start", STARTS),
            span("renew_s", usual.renew_s),
            span("recover_s", usual.recover_s),
            _from_zero(method, given, "level_s", usual.level_s),
            whole_number(method, given, "k", usual.k, 1, 255),
            _from_zero(method, given, "e", usual.e),
            one_of(method, given, "cut", CUTS),
        )


def _from_zero(method: str, given: Mapping[str, Any], name: str, default: float) -> float:
    value = given.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= NEVER_S:
        raise ParameterError(name, f"{method}'s {name} is {value!r}; it takes a number from 0 on")
    return float(value)
