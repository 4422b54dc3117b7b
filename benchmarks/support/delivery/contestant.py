"""Who takes part: programs at both ends of a narrow line, and how to let them begin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.support.delivery.traffic import Due
from testbed.keeper.client import NodeProcess, Program
from testbed.places import LabPlace


@dataclass(frozen=True, slots=True)
class Stage:
    """One contestant on one line: its nodes have names that begin alike, and a folder."""

    prefix: str
    lab: LabPlace
    folder: Path
    addresses: Mapping[str, str]  # role -> address

    def node(self, role: str) -> str:
        """The name of the node that has the role."""
        return f"{self.prefix}-{role}"

    def stderr(self, role: str) -> Path:
        """Where a program's last words go."""
        return self.folder / f"{role}.stderr"


class Contestant(Protocol):
    """A way to send. `near` are the roles on the fast side, `far` those behind the line; `sender` feeds the line."""

    @property
    def name(self) -> str: ...

    @property
    def near(self) -> Sequence[str]: ...

    @property
    def far(self) -> Sequence[str]: ...

    @property
    def sender(self) -> str: ...

    def check(self) -> None:
        """MissingCapability if it cannot run here."""

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """Write its files; what is to be started, each in a namespace of its own."""

    def begin(self, stage: Stage) -> None:
        """The links are up."""

    def is_ready(self, stage: Stage) -> bool:
        """Connected at both ends."""

    def play(self, stage: Stage, start_ns: int, timeline: Sequence[Due]) -> None:
        """Send the messages by the clock, from that moment on."""

    def arrivals(self, stage: Stage) -> dict[int, int]:
        """When messages arrived so far: number in the timeline -> ns since 1970."""
