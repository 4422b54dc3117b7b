"""The client of a lab's keeper: launches it, finds it, asks it."""

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
        """The program as the protocol describes it."""
        return {
            "name": self.name,
            "argv": list(self.argv),
            "env": dict(self.env),
            "stderr": str(self.stderr),
        }


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A node that the keeper is asked to fork: its node.json, and the file of its standard error."""

    name: str
    config: Path
    stderr: Path


class Keeper:
    """A running keeper; each method asks one question of the protocol."""

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
                [sys.executable, "-P", "-m", "testbed.keeper", str(lab.folder), run, *unprivileged],
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
        """The lab's keeper; None if none answers."""
        try:
            request(lab.keeper_socket, {"do": "status"}, _ALIVE_S)
        except ControlError:
            return None
        return cls(lab)

    def status(self) -> dict[str, Any]:
        """run, pid, emulator, nodes, wired, shaped, captured, workers."""
        return self._ask("status")

    def capabilities(self) -> Capabilities:
        """The emulators that this machine supports."""
        return Capabilities(**self._ask("capabilities")["capabilities"])

    def spawn(self, programs: Sequence[Program]) -> tuple[dict[str, int], dict[str, str]]:
        """Make a namespace and a process for each; return pids, and the reasons of failures."""
        answer = self._ask("spawn", nodes=[program.to_json() for program in programs])
        return answer["pids"], answer["failed"]

    def expect_forks(self, config: Path) -> None:
        """Keep a prefork worker ready until `end_scenario`; no node.json may have a longer path than this one."""
        self._ask("forks-expected", config=str(config))

    def fork(self, nodes: Sequence[NodeProcess]) -> tuple[dict[str, int], dict[str, str]]:
        """Fork nodes from one Python process, each in its own namespace; return pids, and the reasons of failures."""
        orders = [
            {"name": node.name, "config": str(node.config), "stderr": str(node.stderr)}
            for node in nodes
        ]
        answer = self._ask("fork", nodes=orders)
        return answer["pids"], answer["failed"]

    def adopt(self, pids: Mapping[str, int]) -> dict[str, str]:
        """Take over the namespaces of these processes; return the reasons of failures."""
        nodes = [{"name": name, "pid": pid} for name, pid in pids.items()]
        failed: dict[str, str] = self._ask("adopt", nodes=nodes)["failed"]
        return failed

    def routers(self, names: Sequence[str]) -> None:
        """Make namespaces without a process that forward the packets of the nodes behind them."""
        self._ask("routers", names=list(names))

    def wire(self, emulator: Emulator, links: Sequence[LinkSpec]) -> None:
        """Make links: configured, but down."""
        self._ask("wire", emulator=emulator, links=[asdict(link) for link in links])

    def shape(self, shapes: Mapping[str, tuple[Shape, Shape]], seed: int | None = None) -> None:
        """Shape links: node -> (up, down). A seed restarts the random numbers of losses and jitter."""
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
        """Change shapes and cuts; the random numbers of losses and jitter go on."""
        changes = [
            {"node": name, "up": link.up.to_json(), "down": link.down.to_json()}
            for name, link in links.items()
        ]
        self._ask("shape", links=changes)

    def capture(self, links: Sequence[str], folder: Path | None, snaplen: int = 65535) -> None:
        """Start the capture of these links, then set them up; without a folder, only set them up."""
        place = None if folder is None else str(folder.absolute())
        self._ask("capture", links=list(links), folder=place, snaplen=snaplen)

    def expect_capture(self) -> None:
        """Start the capture process, while other things are done."""
        self._ask("capture-expected")

    def capture_stop(self) -> tuple[dict[str, dict[str, int]], str]:
        """Complete the files; return counts per link, and the errors of writing."""
        answer = self._ask("capture-stop")
        return answer["links"], answer.get("error", "")

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """Signal the processes of these nodes."""
        self._ask("signal", nodes=list(nodes), signal=int(number))

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Partition the network into these sides until `heal`."""
        self._ask("partition", number=number, sides=[list(side) for side in sides])

    def heal(self, number: int) -> None:
        """End the partition."""
        self._ask("heal", number=number)

    def end_scenario(self) -> None:
        """End the partitions and loads that are left, and the prefork worker."""
        self._ask("end-scenario")

    def expect_load(self) -> None:
        """Start the sender of datagrams, while other things are done."""
        self._ask("load-expected")

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Send datagrams from each of these nodes to another until `unload`."""
        self._ask("load", number=number, nodes=list(nodes), to=to, rate_bps=rate_bps, size=size)

    def unload(self, number: int) -> dict[str, int]:
        """End the load: how many were `sent`, and how many more were due (`unsent`); empty if unknown."""
        answer = self._ask("unload", number=number)
        return {what: answer[what] for what in ("sent", "unsent") if what in answer}

    def execute(self, node: str, argv: Sequence[str], output: Path) -> int:
        """Run a command in the node's network; return its number for `executed`."""
        place = str(output.absolute())
        return int(self._ask("execute", node=node, argv=list(argv), output=place)["number"])

    def executed(self, number: int) -> int | None:
        """The exit code of a command; None while it runs."""
        code: int | None = self._ask("executed")["codes"][str(number)]
        return code

    def unwire(self, nodes: Sequence[str]) -> None:
        """Remove links, processes and namespaces of these nodes."""
        self._ask("unwire", nodes=list(nodes))

    def counters(self, *, restart: bool = False) -> dict[str, Any] | None:
        """The relay's counters; None without a relay. With `restart`, lateness is counted from now on."""
        answer = self._ask("counters", links=False, restart=restart)
        counters: dict[str, Any] | None = answer["relay"]
        return counters

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Link -> direction -> packets that were forwarded and dropped; empty if they are not counted."""
        counts: dict[str, dict[str, dict[str, int]]] = self._ask("counters")["links"] or {}
        return counts

    def _ask(self, do: str, **fields: Any) -> dict[str, Any]:
        return request(self._lab.keeper_socket, {"do": do, **fields}, _PATIENCE_S)


def environment() -> dict[str, str]:
    """Our environment for a process of the lab, with a PYTHONPATH by which it finds this `testbed`."""
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
        last = stderr.strip().splitlines()[-1:] or ["it wrote no error"]
        return TestbedError(
            f"the lab's keeper did not start: {last[0]}",
            "`testbed doctor` shows what this machine lacks",
        )
