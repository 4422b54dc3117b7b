"""Nodes on boards, one each. Ansible sets them up; afterwards SSH is enough.

A node's process is a unit of the board's systemd, its link is the board's own interface. Its capture and its log are on
the board's disk until they are collected. `create` does the work of `wire`, `shape` and `capture` in one playbook.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.common.base import Done, Ended
from testbed.backends.common.gates import nodes_past_gate, open_brokers_first
from testbed.backends.field import clocks, collection, watcher
from testbed.backends.field.board_files import BoardFiles, board_facts, link_of
from testbed.backends.field.boards import Board
from testbed.backends.field.connections import Connections, failures_by_node
from testbed.backends.field.deployment import BoardPaths, Deployed, Deployment, folder, load
from testbed.backends.field.provisioning import BoardSetup
from testbed.control import request_all
from testbed.errors import NodeFailure, TestbedError, few
from testbed.links.changes import DirectionState, LinkState
from testbed.places import LabPlace, RunPlace
from testbed.plan import Actual, Fingerprints
from testbed.progress import Emit, Incomplete
from testbed.topology.model import Node, Topology

NAME = "boards"
START_S = 60.0  # a small board loads Python for a while
STOP_S = 40.0


class BoardsBackend:
    """The boards of one lab."""

    name = NAME
    emulator = NAME
    emulator_reason = "each board shapes its own link, or has a real one"

    def __init__(self, lab: LabPlace, run: RunPlace, topology: Topology, emit: Emit) -> None:
        self._lab, self._run, self._topology, self._emit = lab, run, topology, emit
        self._board_paths = BoardPaths(lab.name)
        self._deployed = Deployed(lab)
        self._fingerprints = Fingerprints(topology)
        self.connections = Connections(lab, run.run)
        self._known: Deployment | None = None

    @property
    def deployment(self) -> Deployment:
        """The boards, as recorded when the lab was deployed."""
        if self._known is None:
            self._known = load(self._lab)
        return self._known

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        """Ask the nodes themselves, through their connections."""
        known = self._deployed.all()
        deployed = {name: known[name] for name in known if names is None or name in names}
        here = {name: self._lab.node_control(name) for name in deployed}
        there = frozenset(deployed)
        return Actual(
            prepared=(folder(self._lab) / "deployment.json").exists(),
            created=frozenset(request_all(here, {"do": "status"})),
            wired=there,
            shaped=there,
            captured=there,
            started=nodes_past_gate(here),
            fingerprints={name: each["fingerprint"] for name, each in deployed.items()},
        )

    def prepare(self, topology: Topology) -> None:
        """Do nothing: boards have no core."""

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """Set up nodes that are not as the file says, start the others; each then waits at its gate."""
        known = self._deployed.all()
        as_filed = self._boards(
            [
                node
                for node in nodes
                if known.get(node.name, {}).get("fingerprint") == self._fingerprints.of(node)
            ]
        )
        lacking = failures_by_node(self._check_units, as_filed)
        again = [board for board in as_filed if board.node not in lacking]
        anew = [board for board in self._boards(nodes) if board not in again]
        for board in (*again, *anew):  # from now on it has data that was not collected
            self._deployed.attempt(board.node)
            here = any(at.exists() for at in collection.run_files(self._run, board.node).values())
            state = collection.PARTIAL if here else collection.NOTHING
            facts = {**board_facts(board, {}), collection.COLLECTED: state, "missing": ""}
            collection.note_board(self._run, board.node, facts)
        failed = self._start_units(again)
        if anew:
            failed |= self._set_up(anew)
        failed |= self.connections.open([b for b in (*again, *anew) if b.node not in failed])
        ready = [board for board in anew if board.node not in failed]
        clocks.measure(self.connections, ready, self._board_paths, self._run, "before")
        for board in (*again, *anew):
            if board.node not in failed:
                done(board.node)
        self._raise_failures("could not be set up", failed)

    def _check_units(self, board: Board) -> None:
        """BoardError unless shaping and capture still run: a board that lost its power has neither."""
        units = [self._board_paths.links_unit] if board.shape else []
        if board.capture and self._topology.capture.enabled:
            units.append(self._board_paths.capture_unit)
        asked = " && ".join(f"systemctl is-active --quiet {unit}" for unit in units)
        self.connections.command(board, ("sh", "-c", asked or "true"))

    def _set_up(self, boards: Sequence[Board]) -> dict[str, str]:
        setup = BoardSetup(
            self._lab, self._run, self._topology, self.deployment, self.connections, self._emit
        )
        failed = setup.apply(boards)
        for board in boards:
            if board.node not in failed:
                node = self._topology.node(board.node)
                link = _as_json(link_of(self._topology, node)) if board.shape else None
                self._deployed.note(board.node, self._fingerprints.of(node), link)
        return failed

    def _start_units(self, boards: Sequence[Board]) -> dict[str, str]:
        """Start the units again, after a crash or a loss of power."""
        failed = self.connections.open(boards)
        words = ("systemctl", "start", self._board_paths.node_unit)
        able = [board for board in boards if board.node not in failed]
        return failed | failures_by_node(
            lambda b: self.connections.command(b, words, as_root=True), able
        )

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        """Do nothing: boards have links of their own."""
        _all_done(nodes, done)

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        """Do nothing: the setup has shaped the links."""
        _all_done(nodes, done)

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        """Do nothing: the setup has started the captures."""
        _all_done(nodes, done)

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        """Open the gates, those of brokers first."""
        watcher.begin(self._lab, self._run)
        boards = self._boards(nodes)

        def running_nodes() -> frozenset[str]:
            """Ask systemd: a small board loads Python for seconds before the node itself answers."""
            words = ("systemctl", "is-active", "--quiet", self._board_paths.node_unit)
            dead = failures_by_node(lambda board: self.connections.command(board, words), boards)
            return frozenset(board.node for board in boards if board.node not in dead)

        failed = open_brokers_first(self._lab, nodes, running_nodes, START_S, done)
        self._raise_failures("did not start", failed)

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """Stop the units: systemd sends SIGTERM, then SIGKILL."""
        words = ("systemctl", "stop", self._board_paths.node_unit)

        def end(board: Board) -> None:
            self.connections.command(board, words, as_root=True, timeout_s=STOP_S)
            done(board.node)

        self._raise_failures("did not end", failures_by_node(end, self._boards(nodes)))

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """Signal the nodes' processes."""
        words = ("systemctl", "kill", f"--signal={number}", self._board_paths.node_unit)
        boards = [self.deployment.board(name) for name in nodes]
        self._raise_failures(
            f"did not get {signal.Signals(number).name}",
            failures_by_node(lambda b: self.connections.command(b, words, as_root=True), boards),
        )

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Stop the units; a node that is made anew is set up again, other data stays until `down`."""
        known = {board.node: board for board in self.deployment.boards}
        words = ("systemctl", "stop", self._board_paths.node_unit)
        boards = [known[name] for name in names if name in known]
        failures_by_node(
            lambda b: self.connections.command(b, words, as_root=True, timeout_s=STOP_S), boards
        )
        for name in names:
            self._deployed.outdate(name)
            done(name)

    def links(self) -> dict[str, LinkState]:
        """The current settings of shaped links; real links are left out."""
        deployed = self._deployed.all()
        return {name: _link(each["link"]) for name, each in deployed.items() if each["link"]}

    def change_links(self, links: Mapping[str, LinkState], before: Mapping[str, LinkState]) -> None:
        """Shape links on the boards themselves; restore all of them if one board refuses."""
        failed = self._shape(links)
        if failed:
            self._shape({name: before[name] for name in links})
            self._raise_failures("did not shape its link", failed)
        for name, link in links.items():
            known = self._deployed.all()[name]
            self._deployed.note(name, known["fingerprint"], _as_json(link))

    def _shape(self, links: Mapping[str, LinkState]) -> dict[str, str]:
        files = BoardFiles(folder(self._lab), self._lab, self._run, self._topology)
        file, program = self._board_paths.links, self._board_paths.nodes_pyz
        words = ("sh", "-c", f"cat > {file} && exec python3 {program} board shape {file}")
        interfaces = collection.known_boards(self._run)

        def shape(board: Board) -> None:
            interface = interfaces[board.node]["interface"]
            wanted = files.links(board, interface, links[board.node])
            self.connections.command(board, words, given=json.dumps(wanted).encode(), as_root=True)

        return failures_by_node(shape, [self.deployment.board(name) for name in links])

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Refuse: boards have no core that could be partitioned."""
        raise _cannot("partitions")

    def heal(self, number: int) -> None:
        """Do nothing: there are no partitions."""

    def expect_starts(self) -> None:
        """Do nothing: systemd starts a unit without preparation."""

    def expect_load(self) -> None:
        """Do nothing: there are no loads."""

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Refuse: boards send only their own messages."""
        raise _cannot("background traffic")

    def unload(self, number: int) -> dict[str, int]:
        """Nothing was sent."""
        return {}

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        """Run a command on the board, as the login user."""
        argv = self.connections.argv(self.deployment.board(node.name), command)
        with output.open("wb") as file:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        return process.poll

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Boards do not count packets."""
        return {}

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        """Collect captures and logs; report missing data, which stays on its board."""
        boards = self.deployment.boards
        failed = self.connections.open(boards)
        able = [board for board in boards if board.node not in failed]
        clocks.measure(self.connections, able, self._board_paths, self._run, "after")
        watcher.end(self._lab)
        return collection.collect(
            self.connections, self.deployment, self._lab, self._run, self._emit, stop=True
        )

    def details(self) -> dict[str, Any]:
        """The facts on each board."""
        return {"boards": collection.known_boards(self._run)}

    def destroy(self) -> list[str]:
        """Remove everything of this lab from the boards, and close the connections."""
        from testbed.backends.field.removal import clear_boards
        from testbed.keeper.processes import end_marked

        removed, left = clear_boards(
            self._lab, self._run, self.deployment, self._emit, discard=True
        )
        for sentence in left:
            self._emit(Incomplete(sentence))
        return removed + end_marked(self._lab)

    def _boards(self, nodes: Sequence[Node]) -> list[Board]:
        return [self.deployment.board(node.name) for node in nodes]

    def _raise_failures(self, what: str, failed: Mapping[str, str]) -> None:
        if not failed:
            return
        first, reason = next(iter(failed.items()))
        artifacts = self._run.folder / "ansible"
        raise NodeFailure(
            f"{few(list(failed))} {what} ({first}: {reason})",
            f"the others go on; `testbed deploy` again retries, ansible's output is in {artifacts}",
            failed,
        )


def _cannot(what: str) -> TestbedError:
    return TestbedError(
        f"boards do not do {what}", "cut links instead, or play this scenario on docker or netns"
    )


def _as_json(link: LinkState) -> dict[str, Any]:
    return {"up": link.up.to_json(), "down": link.down.to_json()}


def _link(data: Mapping[str, Any]) -> LinkState:
    return LinkState(DirectionState.from_json(data["up"]), DirectionState.from_json(data["down"]))


def _all_done(nodes: Sequence[Node], done: Callable[[str], None]) -> None:
    for node in nodes:
        done(node.name)
