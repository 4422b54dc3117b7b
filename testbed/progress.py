"""What happens, as typed events. Cores emit them and never print; the terminal is one listener."""

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
    """Something worth telling: which backend and why, where the report is."""

    text: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that leaves a doubt; the exit code becomes 3."""

    text: str


Event = StageStarted | StageAdvanced | StageEnded | Note | Warned
Emit = Callable[[Event], None]


def ignore(_: Event) -> None:
    """A listener that does not care."""
