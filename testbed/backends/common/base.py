"""What every place that can run a lab offers. Backends do; deciding what to do is `testbed.plan`'s.

Order within one `up`: prepare, create, wire, shape, capture, start. Each call takes a whole batch and tells `done`
the name of each finished unit. Nodes that fail are named in one NodeFailure after the rest of the batch was tried.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from testbed.links.changes import LinkState
from testbed.plan import Actual
from testbed.topology.model import Node, Topology

Done = Callable[[str], None]
Ended = Callable[[], int | None]  # a command's exit code; None while it runs


@dataclass(frozen=True, slots=True)
class ExternalState:
    """How somebody else's program fares."""

    running: bool
    ready: bool
    status_text: str  # of the engine: running, exited (1), ...


class Backend(Protocol):
    """One lab in one place."""

    @property
    def name(self) -> str:
        """docker, netns, ..."""

    @property
    def emulator(self) -> str:
        """Who shapes this lab's links: netem, tbf, relay; known after `prepare`."""

    @property
    def emulator_reason(self) -> str:
        """Why this emulator: asked for, or what the machine has."""

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        """What exists now, asked from the machine, not remembered; of these nodes only, which disturbs no others."""

    def prepare(self, topology: Topology) -> None:
        """The core that all links meet in."""

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """Processes or containers, each with a network namespace, waiting at their gate."""

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        """One access link a node; still down, so that nothing is sent before the capture listens."""

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        """Rates, delays, losses as the topology's profiles say."""

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        """Listen on the links of these nodes, then raise them."""

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        """Open the gates; returns when the nodes have said that they run (not yet that they are connected)."""

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """Ask politely (SIGTERM), wait, then insist; processes and containers of these nodes end."""

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """To the processes of these nodes, at once."""

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Take away the nodes of these names and their links; no topology may know them any more."""

    def links(self) -> dict[str, LinkState]:
        """The links that there are, as they are now: changed ones, too."""

    def change_links(self, links: Mapping[str, LinkState], before: Mapping[str, LinkState]) -> None:
        """Shapes and cuts of these links from now on; as they were before, if one cannot be done."""

    def part(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Nodes of these sides cannot reach each other, until `reunite` names the number."""

    def reunite(self, number: int) -> None:
        """They can again."""

    def expect_starts(self) -> None:
        """Get ready: nodes will be started again in a scenario, until the keeper is calmed."""

    def expect_load(self) -> None:
        """Get ready: `load` will be called in a moment."""

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Datagrams of this payload from each of these nodes to another, until `unload` names the number."""

    def unload(self, number: int) -> dict[str, int]:
        """How many datagrams were `sent`, and how many more were due (`unsent`); nothing if nobody knows."""

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        """Begin a command inside the node; what it writes goes to the file."""

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Packets by link and direction: forwarded, dropped_queue, dropped_loss, dropped_cut, as far as known."""

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        """End the capture; per link: packets, bytes, dropped; and what went wrong (a full disk), if anything."""

    def details(self) -> dict[str, Any]:
        """What the manifest should say of this place: versions, image, emulator's own counters."""

    def destroy(self) -> list[str]:
        """Remove everything that carries the lab's mark, whatever state it is in; what was removed, as sentences."""
