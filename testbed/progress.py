"""Progress as typed events. The core emits them and never prints; the terminal is one listener."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage of work begins; `total` is its number of units, or None if unknown."""

    stage: str
    total: int | None = None


@dataclass(frozen=True, slots=True)
class StageAdvanced:
    """`by` units of a stage are done; `detail` names the last one."""

    stage: str
    by: int = 1
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StageEnded:
    """A stage is complete."""

    stage: str


@dataclass(frozen=True, slots=True)
class Note:
    """A fact for the user: the chosen backend and the reason, the path of the report."""

    text: str


@dataclass(frozen=True, slots=True)
class Warned:
    """A doubt that the user may accept; the exit code stays 0, and is 3 with `--strict`."""

    text: str


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A part of what the command was asked for that it did not do; the exit code becomes 3."""

    text: str


Event = StageStarted | StageAdvanced | StageEnded | Note | Warned | Incomplete
Emit = Callable[[Event], None]


def ignore(_: Event) -> None:
    """Discard an event."""
