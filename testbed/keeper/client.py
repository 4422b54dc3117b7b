"""Talking to a lab's keeper: launch it, find it, ask it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import testbed
from testbed.control import ControlError, request
from testbed.errors import InputError, MissingCapability, TestbedError
from testbed.links.changes import DirectionState, LinkState
from testbed.links.emulator import Capabilities
from testbed.links.namespaces import privileged
from testbed.links.spec import LinkSpec
from testbed.places import LabPlace, marks
from testbed.topology.model import Emulator, Shape

MAX_SOCKET_PATH = 107  # characters, unix(7)
_PATIENCE_S = 180.0  # a batch of hundreds of nodes on a busy machine
_START_S = 60.0
_ALIVE_S = 30.0  # it may be busy with a batch


@dataclass(frozen=True, slots=True)
class Program:
    """A node's process as the keeper is asked to start it."""

    name: str
    argv: tuple[str, ...]
    stderr: Path
    env: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As the protocol wants it."""
        return {
            "name": self.name,
            "argv": list(self.argv),
            "env": dict(self.env),
            "stderr": str(self.stderr),
        }


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A node of ours as the keeper is asked to let it be born: its node.json, and where its last words go."""

    name: str
    config: Path
    stderr: Path


class Keeper:
    """A running keeper; each method is one question of the protocol."""

    def __init__(self, lab: LabPlace) -> None:
        self._lab = lab

    @classmethod
    def launch(cls, lab: LabPlace, run: str) -> "Keeper":
        """Start a keeper for the lab; returns when it answers."""
        if len(str(lab.keeper_socket)) > MAX_SOCKET_PATH:
            raise InputError(
                f"the path of the lab's control socket is too long: {lab.keeper_socket}",
                "choose a shorter state folder with TESTBED_STATE, or a shorter lab name",
            )
        if cls.connect(lab) is not None:
            raise TestbedError(
                f"lab {lab.name} has a keeper already", f"end it with `testbed down {lab.name}`"
            )
        unprivileged = [] if privileged() else ["--unprivileged"]
        try:
            started = subprocess.run(
                [sys.executable, "-m", "testbed.keeper", str(lab.folder), run, *unprivileged],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env={**environment(), **marks(lab, run, "keeper")},
                start_new_session=True,
                timeout=_START_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise TestbedError(
                f"the lab's keeper did not start within {_START_S:.0f} s",
                f"clear it away with `testbed down {lab.name}` and try again",
            ) from late
        if started.returncode != 0:
            raise _failure(started.stdout, started.stderr)
        return cls(lab)

    @classmethod
    def connect(cls, lab: LabPlace) -> "Keeper | None":
        """The lab's keeper, if one lives."""
        try:
            request(lab.keeper_socket, {"do": "status"}, _ALIVE_S)
        except ControlError:
            return None
        return cls(lab)

    def status(self) -> dict[str, Any]:
        """run, pid, emulator, nodes, wired, shaped, captured, workers."""
        return self._ask("status")

    def capabilities(self) -> Capabilities:
        """With what links can be shaped here."""
        return Capabilities(**self._ask("capabilities")["capabilities"])

    def spawn(self, programs: Sequence[Program]) -> tuple[dict[str, int], dict[str, str]]:
        """A namespace and a process each; pids, and reasons for those that failed."""
        answer = self._ask("spawn", nodes=[program.to_json() for program in programs])
        return answer["pids"], answer["failed"]

    def expect_forks(self, config: Path) -> None:
        """Get ready to let nodes be born, until `end_scenario`; none has a longer path to its node.json than this."""
        self._ask("births-expected", config=str(config))

    def fork(self, nodes: Sequence[NodeProcess]) -> tuple[dict[str, int], dict[str, str]]:
        """A namespace and a node each, all with one start of Python; pids, and reasons for those that failed."""
        orders = [
            {"name": node.name, "config": str(node.config), "stderr": str(node.stderr)}
            for node in nodes
        ]
        answer = self._ask("bear", nodes=orders)
        return answer["pids"], answer["failed"]

    def adopt(self, pids: Mapping[str, int]) -> dict[str, str]:
        """Take the namespaces of these processes; reasons for those that failed."""
        nodes = [{"name": name, "pid": pid} for name, pid in pids.items()]
        failed: dict[str, str] = self._ask("adopt", nodes=nodes)["failed"]
        return failed

    def routers(self, names: Sequence[str]) -> None:
        """Namespaces without a process that pass on the packets of the nodes behind them."""
        self._ask("routers", names=list(names))

    def wire(self, emulator: Emulator, links: Sequence[LinkSpec]) -> None:
        """Links exist, configured, down."""
        self._ask("wire", emulator=emulator, links=[asdict(link) for link in links])

    def shape(self, shapes: Mapping[str, tuple[Shape, Shape]], seed: int | None = None) -> None:
        """node -> (up, down); a seed starts the randomness of losses and jitter anew."""
        links = [
            {"node": node, "up": asdict(up), "down": asdict(down)}
            for node, (up, down) in shapes.items()
        ]
        self._ask("shape", links=links, seed=seed)

    def links(self) -> dict[str, LinkState]:
        """The shaped links as they are now."""
        found = self._ask("links")["links"]
        return {
            name: LinkState(
                DirectionState.from_json(both["up"]), DirectionState.from_json(both["down"])
            )
            for name, both in found.items()
        }

    def change_links(self, links: Mapping[str, LinkState]) -> None:
        """Shapes and cuts from now on; the randomness of losses and jitter goes on."""
        changes = [
            {"node": name, "up": link.up.to_json(), "down": link.down.to_json()}
            for name, link in links.items()
        ]
        self._ask("shape", links=changes)

    def capture(self, links: Sequence[str], folder: Path | None, snaplen: int = 65535) -> None:
        """Listen on the links, then raise them; no folder: only raise."""
        place = None if folder is None else str(folder.absolute())
        self._ask("capture", links=list(links), folder=place, snaplen=snaplen)

    def expect_capture(self) -> None:
        """Get ready to listen, while other things are done."""
        self._ask("capture-expected")

    def capture_stop(self) -> tuple[dict[str, dict[str, int]], str]:
        """Complete the files; counts per link, and what went wrong while writing them."""
        answer = self._ask("capture-stop")
        return answer["links"], answer.get("error", "")

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """To the processes of these nodes."""
        self._ask("signal", nodes=list(nodes), signal=int(number))

    def part(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Nodes of these sides cannot reach each other until `reunite`."""
        self._ask("part", number=number, sides=[list(side) for side in sides])

    def reunite(self, number: int) -> None:
        """They can again."""
        self._ask("reunite", number=number)

    def end_scenario(self) -> None:
        """Partitions and loads that nobody has ended are over; no more births are expected."""
        self._ask("calm")

    def expect_load(self) -> None:
        """Get ready to send datagrams, while other things are done."""
        self._ask("load-expected")

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Datagrams from each of these nodes to another until `unload`."""
        self._ask("load", number=number, nodes=list(nodes), to=to, rate_bps=rate_bps, size=size)

    def unload(self, number: int) -> dict[str, int]:
        """How many were `sent`, and how many more were due (`unsent`); nothing if nobody knows."""
        answer = self._ask("unload", number=number)
        return {what: answer[what] for what in ("sent", "unsent") if what in answer}

    def execute(self, node: str, argv: Sequence[str], output: Path) -> int:
        """A command in the node's network; the number that `executed` calls it by."""
        place = str(output.absolute())
        return int(self._ask("execute", node=node, argv=list(argv), output=place)["number"])

    def executed(self, number: int) -> int | None:
        """Its exit code; None while it runs."""
        code: int | None = self._ask("executed")["codes"][str(number)]
        return code

    def unwire(self, nodes: Sequence[str]) -> None:
        """Links, processes and namespaces of these nodes go."""
        self._ask("unwire", nodes=list(nodes))

    def counters(self, *, restart: bool = False) -> dict[str, Any] | None:
        """The relay's counters, if one serves; with `restart`, lateness counts from now on only."""
        answer = self._ask("counters", links=False, restart=restart)
        counters: dict[str, Any] | None = answer["relay"]
        return counters

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Link -> direction -> what was forwarded and dropped; empty where nobody counts."""
        counts: dict[str, dict[str, dict[str, int]]] = self._ask("counters")["links"] or {}
        return counts

    def _ask(self, do: str, **fields: Any) -> dict[str, Any]:
        return request(self._lab.keeper_socket, {"do": do, **fields}, _PATIENCE_S)


def environment() -> dict[str, str]:
    """As ours, for a process of the lab; it finds this very `testbed` wherever it is started."""
    package_root = str(Path(testbed.__file__).resolve().parent.parent)
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([package_root, before]) if before else package_root
    return {**os.environ, "PYTHONPATH": path}


def _failure(stdout: str, stderr: str) -> TestbedError:
    try:
        report = json.loads(stdout)
        return MissingCapability(
            f"the lab's keeper did not start: {report['error']}", report["hint"]
        )
    except (ValueError, KeyError):
        last = stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return TestbedError(
            f"the lab's keeper did not start: {last[0]}",
            "`testbed doctor` shows what this machine lacks",
        )
