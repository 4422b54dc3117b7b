"""A lab in two places: some nodes on boards, the others on this machine. Each place does its own nodes' part."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.base import Backend, Done, Ended
from testbed.backends.field.backend import BoardsBackend
from testbed.backends.field.uplink import connect
from testbed.errors import NodeFailure, TestbedError
from testbed.links.changes import Link
from testbed.places import LabPlace
from testbed.plan import Actual
from testbed.topology.model import Node, Topology


class MixedBackend:
    """`here` keeps the nodes of this machine, `field` those on boards."""

    def __init__(
        self, here: Backend, field: BoardsBackend, lab: LabPlace, topology: Topology
    ) -> None:
        self._here, self._field, self._lab, self._topology = here, field, lab, topology

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self._field.name}+{self._here.name}"

    @property
    def emulator(self) -> str:
        """Of the links here; boards shape their own."""
        return self._here.emulator

    @property
    def emulator_reason(self) -> str:
        """As the backend here says."""
        return f"{self._here.emulator_reason}; {self._field.emulator_reason}"

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        """Both parts."""
        here, there = self._here.inspect(names), self._field.inspect(names)
        return Actual(
            prepared=here.prepared and there.prepared,
            created=here.created | there.created,
            wired=here.wired | there.wired,
            shaped=here.shaped | there.shaped,
            captured=here.captured | there.captured,
            started=here.started | there.started,
            fingerprints={**here.fingerprints, **there.fingerprints},
        )

    def prepare(self, topology: Topology) -> None:
        """The core, and its way to the boards' network."""
        self._here.prepare(topology)
        self._field.prepare(topology)
        uplink = self._field.deployment.uplink
        assert uplink is not None
        connect(self._lab, uplink)

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.create(part, done), nodes)

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.wire(part, done), nodes)

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.shape(part, done), nodes)

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.capture(part, done), nodes)

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.start(part, done), nodes)

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.stop(part, done), nodes)

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """Each place its own."""
        there, here = self._divided(nodes)
        if here:
            self._here.signal(here, number)
        if there:
            self._field.signal(there, number)

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Each place what it knows."""
        on_boards = {board.node for board in self._field.deployment.boards}
        self._field.remove([name for name in names if name in on_boards], done)
        self._here.remove([name for name in names if name not in on_boards], done)

    def links(self) -> dict[str, Link]:
        return {**self._here.links(), **self._field.links()}

    def change_links(self, links: Mapping[str, Link], before: Mapping[str, Link]) -> None:
        """The boards' first: they may refuse, and then nothing was changed here."""
        there, here = self._divided([*links])
        if there:
            self._field.change_links({name: links[name] for name in there}, before)
        if here:
            try:
                self._here.change_links({name: links[name] for name in here}, before)
            except TestbedError:
                if there:
                    self._field.change_links({name: before[name] for name in there}, links)
                raise

    def part(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """In the core, if it is between nodes of this machine only."""
        backend = (
            self._field if self._divided([n for side in sides for n in side])[0] else self._here
        )
        backend.part(number, sides)

    def reunite(self, number: int) -> None:
        self._here.reunite(number)

    def expect_starts(self) -> None:
        self._here.expect_starts()

    def expect_load(self) -> None:
        self._here.expect_load()

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Between nodes of this machine only."""
        backend = self._field if self._divided([*nodes, to])[0] else self._here
        backend.load(number, nodes, to, rate_bps, size)

    def unload(self, number: int) -> dict[str, int]:
        return self._here.unload(number)

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        return (self._field if node.on_board else self._here).execute(node, command, output)

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        return {**self._here.link_counts(), **self._field.link_counts()}

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        """What one place cannot tell is no reason not to ask the other."""
        there, missing = self._field.captured()
        here, trouble = self._here.captured()
        return {**here, **there}, "; ".join(filter(None, [trouble, missing]))

    def details(self) -> dict[str, Any]:
        return {**self._here.details(), **self._field.details()}

    def destroy(self) -> list[str]:
        return self._field.destroy() + self._here.destroy()

    def _both(self, do: Callable[[Backend, Sequence[Node]], None], nodes: Sequence[Node]) -> None:
        """This machine's part, then the boards'; failures of both as one."""
        failures = []
        for backend, on_board in ((self._here, False), (self._field, True)):
            part = [node for node in nodes if node.on_board is on_board]
            if not part:
                continue
            try:
                do(backend, part)
            except NodeFailure as failure:
                failures.append(failure)
        if failures:
            raise NodeFailure.of(failures)

    def _divided(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        there = [name for name in names if self._topology.node(name).on_board]
        return there, [name for name in names if name not in there]
