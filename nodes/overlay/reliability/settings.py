"""Reliability settings: the parameters of an overlay method that brokers and clients share.

All other parameters of a method belong to the overlay between the brokers. A star has no custody and no heartbeats
unless its parameters ask for them: its bytes are those of the publications alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodes.parameters import ParameterError, seconds, whole_number
from nodes.protocol.wire import HIGHEST_PRIORITY, LOWEST_PRIORITY

PARAMETERS = ("custody_from", "retain_s", "heartbeat_s", "heartbeat_budget", "max_links")
NEVER = "never"
STAR = "star"

CUSTODY_FROM = 3
RETAIN_S = 600.0
HEARTBEAT_S = 5.0
HEARTBEAT_BUDGET = 60
MAX_LINKS = 24


@dataclass(frozen=True, slots=True)
class ReliabilitySettings:
    """The settings that every node of an overlay has."""

    custody_from: int | None = CUSTODY_FROM  # the lowest level with custody; None: no level has it
    retain_s: float = RETAIN_S  # how long publications with custody are remembered
    heartbeat_s: float | None = HEARTBEAT_S  # silence after which a peer is probed; None: never
    heartbeat_budget: int = HEARTBEAT_BUDGET  # bytes/s that the heartbeats of a node may cost
    max_links: int = MAX_LINKS  # to other brokers
    advertise: bool = True  # clients announce the topics on which they will publish

    def custody(self, level: int) -> bool:
        """Whether publications of this level travel with custody."""
        return self.custody_from is not None and level >= self.custody_from


def reliability_settings(method: str, parameters: Mapping[str, Any]) -> ReliabilitySettings:
    """The settings in a method's parameters, the others are ignored; ParameterError if a value is wrong."""
    reliable = method != STAR
    heartbeats = reliable or "heartbeat_s" in parameters
    return ReliabilitySettings(
        custody_from=_custody_from(method, parameters, CUSTODY_FROM if reliable else NEVER),
        retain_s=seconds(method, parameters, "retain_s", RETAIN_S, most=86_400),
        heartbeat_s=seconds(method, parameters, "heartbeat_s", HEARTBEAT_S, most=3600)
        if heartbeats
        else None,
        heartbeat_budget=whole_number(
            method, parameters, "heartbeat_budget", HEARTBEAT_BUDGET, least=1
        ),
        max_links=whole_number(method, parameters, "max_links", MAX_LINKS, least=2),
        advertise=reliable,
    )


def _custody_from(method: str, parameters: Mapping[str, Any], default: int | str) -> int | None:
    value = parameters.get("custody_from", default)
    if value == NEVER:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
        raise ParameterError(
            "custody_from",
            f"{method}'s custody_from is {value!r}; it takes a level from 1 to 5, or never",
        )
    return int(value)
