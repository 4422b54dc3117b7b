"""The interface of a backend, which runs a lab in one place. `testbed.plan` decides what a backend has to do.

Order within one `up`: prepare, create, wire, shape, capture, start. Each call takes a whole batch and calls `done` with
the name of each finished node. One NodeFailure names all nodes that failed, after the rest of the batch was tried.
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
    """The state of an external node's program."""

    running: bool
    ready: bool
    status_text: str  # the engine's text: running, exited (1), ...


class Backend(Protocol):
    """One lab in one place."""

    @property
    def name(self) -> str:
        """docker, netns, ..."""

    @property
    def emulator(self) -> str:
        """The emulator of this lab's links: netem, tbf, relay; known after `prepare`."""

    @property
    def emulator_reason(self) -> str:
        """Why this emulator: asked for, or what the machine has."""

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        """What exists now, asked from the machine, not remembered; with `names`, ask about these nodes only."""

    def prepare(self, topology: Topology) -> None:
        """Make the core in which all links meet."""

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """Make processes or containers, each with a network namespace, which wait at their gates."""

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        """Make one access link a node; leave it down, so that nothing is sent before the capture starts."""

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        """Set rates, delays and losses of the topology's profiles."""

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        """Start the capture of the links of these nodes, then set the links up."""

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        """Open the gates; return when the nodes report that they run (they may not be connected yet)."""

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """End processes and containers of these nodes: SIGTERM, then SIGKILL after a grace period."""

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """Signal the processes of these nodes at once."""

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Remove the nodes of these names and their links; the topology need not contain them any more."""

    def links(self) -> dict[str, LinkState]:
        """All existing links with their current settings."""

    def change_links(self, links: Mapping[str, LinkState], before: Mapping[str, LinkState]) -> None:
        """Change shapes and cuts of these links; restore all of them to `before` if one change fails."""

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Partition the network into these sides, until `heal` with the same number."""

    def heal(self, number: int) -> None:
        """End the partition."""

    def expect_starts(self) -> None:
        """Prepare for nodes that a scenario starts again, until the keeper's `end_scenario`."""

    def expect_load(self) -> None:
        """Prepare for `load`, which will be called soon."""

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Send datagrams of this payload from each of these nodes to another, until `unload` with the same number."""

    def unload(self, number: int) -> dict[str, int]:
        """End a load: how many datagrams were `sent`, and how many more were due (`unsent`); empty if unknown."""

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        """Start a command inside the node; its output goes to the file."""

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Packets by link and direction: forwarded, dropped_queue, dropped_loss, dropped_cut, as far as known."""

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        """End the capture; return packets, bytes and dropped per link, and an error (such as a full disk), if any."""

    def details(self) -> dict[str, Any]:
        """Details for the manifest: versions, images, the emulator's own counters."""

    def destroy(self) -> list[str]:
        """Remove everything that carries the lab's mark, in any state; return sentences on what was removed."""
