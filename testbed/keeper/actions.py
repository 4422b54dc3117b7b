"""The keeper's scenario actions beside links and signals: partitions, background traffic, commands in nodes."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.keeper.children import end, start
from testbed.keeper.nodes import NodeEntry
from testbed.keeper.workers import Worker
from testbed.links import partition
from testbed.links.wiring import ns_path

Find = Callable[[str], NodeEntry]


class ScenarioActions:
    """`find` returns a node's entry, `make` starts the sender of background traffic, `marks` are for a process."""

    def __init__(
        self, find: Find, make: Callable[[], Worker], marks: Callable[[str], Mapping[str, str]]
    ) -> None:
        self._find = find
        self._make = make
        self._marks = marks
        self._partitions: dict[int, list[list[str]]] = {}
        self._loads: set[int] = set()
        self._worker: Worker | None = None
        self._commands: dict[int, subprocess.Popen[bytes]] = {}

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Partition the network: nodes of different sides cannot reach each other."""
        self.heal(number)  # remove the rules of an earlier scenario
        addresses = [[self._find(name).attachment.spec.address for name in side] for side in sides]
        self._partitions[number] = addresses
        partition.partition(number, addresses)

    def heal(self, number: int) -> None:
        """End the partition."""
        if (sides := self._partitions.pop(number, None)) is not None:
            partition.heal(number, sides)

    def end_scenario(self) -> None:
        """End the partitions and loads that an interrupted scenario has left."""
        for number in [*self._partitions]:
            self.heal(number)
        for number in [*self._loads]:
            self.unload(number)

    def expect_load(self) -> None:
        """Start the sending process, so that it is ready when `load` is called."""
        if self._worker is None or not self._worker.running:
            self._worker = self._make()

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Send datagrams from each of these nodes to another."""
        self.unload(number)
        self.expect_load()
        assert self._worker is not None
        receiver = self._find(to).attachment
        flows = [
            {
                "ns": ns_path(self._find(name).ns_fd),
                "to_ns": ns_path(receiver.ns_fd),
                "target": receiver.spec.address,
            }
            for name in nodes
        ]
        self._loads.add(number)
        question = {"do": "begin", "number": number, "rate_bps": rate_bps, "size": size}
        self._worker.ask({**question, "flows": flows})

    def unload(self, number: int) -> dict[str, int]:
        """End a load: how many datagrams were `sent`, and how many more were due (`unsent`); empty if unknown."""
        known = number in self._loads
        self._loads.discard(number)
        if not known or self._worker is None or not self._worker.running:
            return {}
        answer = self._worker.ask({"do": "end", "number": number})
        return {what: int(answer[what]) for what in ("sent", "unsent")}

    def execute(self, node: str, argv: Sequence[str], output: str) -> int:
        """Run a command in the node's network; return its number, by which `executed` reports its exit code."""
        number = len(self._commands) + 1
        entry = self._find(node)
        self._commands[number] = start(
            list(argv), self._marks("exec"), Path(output), ns_fd=entry.ns_fd
        )
        return number

    def executed(self) -> dict[str, int | None]:
        """Number -> exit code; None while it runs."""
        return {str(number): child.poll() for number, child in self._commands.items()}

    def close(self) -> None:
        """End all commands and the sending process."""
        end(list(self._commands.values()))
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def reap(self) -> None:
        """Collect children that have ended."""
        for child in self._commands.values():
            child.poll()
