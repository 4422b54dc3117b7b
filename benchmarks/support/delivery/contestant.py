"""The contestants: programs at both ends of a narrow link, and how to start them."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.support.delivery.traffic import Due
from testbed.backends.common.node_config import BROKER_PORT
from testbed.control import ControlError, request
from testbed.errors import MissingCapability
from testbed.jsonfiles import write_json
from testbed.keeper.client import NodeProcess, Program, environment
from testbed.places import LabPlace


@dataclass(frozen=True, slots=True)
class Stage:
    """One contestant on one link: a folder, and nodes whose names begin alike."""

    prefix: str
    lab: LabPlace
    folder: Path
    addresses: Mapping[str, str]  # role -> address

    def node(self, role: str) -> str:
        """The name of the node that has the role."""
        return f"{self.prefix}-{role}"

    def stderr(self, role: str) -> Path:
        """The file of a program's standard error."""
        return self.folder / f"{role}.stderr"


class Contestant(Protocol):
    """A way to send. `near` are the roles on the fast side, `far` those behind the link; `sender` feeds the link."""

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
        """Write its files; return the programs to start, each in a namespace of its own."""

    def begin(self, stage: Stage) -> None:
        """Start work: the links are up."""

    def is_ready(self, stage: Stage) -> bool:
        """Whether both ends are connected."""

    def play(self, stage: Stage, start_ns: int, timeline: Sequence[Due]) -> None:
        """Send the messages by the clock, from that moment on."""

    def arrivals(self, stage: Stage) -> dict[int, int]:
        """The messages that have arrived so far: number in the timeline -> ns since 1970."""


# Our own nodes: sensor, broker, and a subscriber behind the link (or two, one for urgent messages only).


URGENT, ROUTINE = "urgent", "routine"
URGENT_LEVEL, ROUTINE_LEVEL = 5, 1
KINDS = {"sensor": "sensor", "broker": "broker"}
BROKER_NUMBER = 2  # the second of those that are near


@dataclass(frozen=True, slots=True)
class Ours:
    """One delivery method on all links, as a lab has it."""

    name: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    listeners: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"subscriber": (URGENT, ROUTINE)}
    )
    near: tuple[str, ...] = ("sensor", "broker")
    sender: str = "broker"

    @property
    def far(self) -> tuple[str, ...]:
        """One node, or one for each connection."""
        return tuple(self.listeners)

    def check(self) -> None:
        """Nothing to check: all of it is part of this project."""

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """Write a node.json for each node."""
        return [
            NodeProcess(stage.node(role), self._configured(stage, role, n), stage.stderr(role))
            for n, role in enumerate((*self.near, *self.far), start=1)
        ]

    def _configured(self, stage: Stage, role: str, number: int) -> Path:
        lab, name = stage.lab, stage.node(role)
        lab.node(name).mkdir(parents=True)
        delivery = {"method": self.method, "parameters": dict(self.parameters)}
        here = {"host": stage.addresses["broker"], "port": BROKER_PORT}
        config = {
            "lab": lab.name,
            "run": "benchmark",
            "name": name,
            "number": number,
            "kind": KINDS.get(role, "subscriber"),
            "control": str(lab.node_control(name)),
            "log": str(_log(stage, role)),
            "seed": 1,
            "overlay": {"method": "star", "parameters": {}},
            "delivery": delivery,
            "deliveries": {},
            "listen": here if role == "broker" else None,
            "brokers": []
            if role == "broker"
            else [{"name": stage.node("broker"), "number": BROKER_NUMBER, **here}],
            "seeds": [],
            "topics": list(self.listeners.get(role, ())),
            "dimensions": 0,
            "secret": "benchmark",
            "journal": None,
        }
        write_json(lab.node_config(name), config, indent=None)
        return lab.node_config(name)

    def begin(self, stage: Stage) -> None:
        """Open the gates."""
        for role in (*self.near, *self.far):
            request(stage.lab.node_control(stage.node(role)), {"do": "go"})

    def is_ready(self, stage: Stage) -> bool:
        """Whether all nodes report that they are ready."""
        controls = [stage.lab.node_control(stage.node(role)) for role in (*self.near, *self.far)]
        with suppress(ControlError):
            return all(request(control, {"do": "status"})["ready"] for control in controls)
        return False

    def play(self, stage: Stage, start_ns: int, timeline: Sequence[Due]) -> None:
        """Let the sensor play the timeline itself."""
        actions = [
            {
                "at_ns": due.at_ns,
                "topic": URGENT if due.urgent else ROUTINE,
                "priority": URGENT_LEVEL if due.urgent else ROUTINE_LEVEL,
                "size": due.size,
            }
            for due in timeline
        ]
        control = stage.lab.node_control(stage.node("sensor"))
        request(control, {"do": "play", "start_ns": start_ns, "actions": actions}, 60.0)

    def arrivals(self, stage: Stage) -> dict[int, int]:
        """Arrivals from the nodes' logs; the sensor's log gives the order in which the messages were made."""
        published = (e["id"] for e in _events(_log(stage, "sensor")) if e["event"] == "publish")
        number_of = {identity: number for number, identity in enumerate(published)}
        return {
            number_of[event["id"]]: int(event["t"])
            for role in self.far
            for event in _events(_log(stage, role))
            if event["event"] == "receive"
        }


def _log(stage: Stage, role: str) -> Path:
    return stage.folder / f"{role}.jsonl"


def _events(log: Path) -> Iterable[dict[str, Any]]:
    """The complete lines of a log that may still grow."""
    for line in log.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


# Other programs as contestants.


MOSQUITTO = "/usr/sbin/mosquitto"  # Debian's place, which is not in every user's path
EXTRA = "install it with `pip install -e '.[benchmarks]'`"
_PROGRAMS = "benchmarks.support.delivery"


@dataclass(frozen=True, slots=True)
class Peer:
    """A publisher on one side, a receiver on the other; both are modules of ours around another library."""

    name: str
    module: str
    needs: tuple[str, str]  # a Python package: as it is imported, and as it is installed
    settings: Mapping[str, Any] = field(default_factory=dict)
    near: tuple[str, ...] = ("publisher",)
    far: tuple[str, ...] = ("receiver",)
    sender: str = "publisher"

    def check(self) -> None:
        """Raise MissingCapability if its library is not installed."""
        module, package = self.needs
        if importlib.util.find_spec(module) is None:
            raise MissingCapability(f"the Python package {package} is missing", EXTRA)

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """Write the files that both programs read."""
        (stage.folder / "timeline.json").write_text(json.dumps([asdict(due) for due in timeline]))
        (stage.folder / "settings.json").write_text(json.dumps(dict(self.settings)))
        host = stage.addresses[self.sender]
        return [
            program(stage, "publisher", *self._command("publish", host, stage)),
            program(stage, "receiver", *self._command("receive", host, stage)),
        ]

    def _command(self, what: str, host: str, stage: Stage) -> list[str]:
        module = f"{_PROGRAMS}.{self.module}"
        return [sys.executable, "-m", module, what, host, str(stage.folder)]

    def begin(self, stage: Stage) -> None:
        """Nothing to do: each program tries to connect until the other end listens."""

    def is_ready(self, stage: Stage) -> bool:
        """Whether both programs report that they are ready."""
        return all((stage.folder / f"{role}.ready").exists() for role in ("publisher", "receiver"))

    def play(self, stage: Stage, start_ns: int, timeline: Sequence[Due]) -> None:
        """Write the file for which the publisher waits, atomically."""
        unfinished = stage.folder / "start.new"
        unfinished.write_text(str(start_ns))
        unfinished.rename(stage.folder / "start")

    def arrivals(self, stage: Stage) -> dict[int, int]:
        """Arrivals that the receiver recorded."""
        lines = (stage.folder / "received.jsonl").read_text().splitlines(keepends=True)
        noted = [json.loads(line) for line in lines if line.endswith("\n")]
        return {one["number"]: one["at_ns"] for one in noted}


@dataclass(frozen=True, slots=True)
class Mosquitto(Peer):
    """Mosquitto: the broker feeds the link."""

    near: tuple[str, ...] = ("publisher", "mosquitto")
    sender: str = "mosquitto"

    def check(self) -> None:
        """MissingCapability if the broker or the library is not there."""
        if shutil.which(MOSQUITTO) is None:
            raise MissingCapability("mosquitto is missing", "`apt-get install mosquitto` has it")
        super(Mosquitto, self).check()

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """Write the broker's configuration, and start the broker, too."""
        from benchmarks.support.delivery.mqtt import CONFIGURATION

        settings = stage.folder / "mosquitto.conf"
        settings.write_text(CONFIGURATION + f"pid_file {stage.folder}/mosquitto.pid\nuser root\n")
        broker = program(stage, "mosquitto", MOSQUITTO, "-c", str(settings))
        return [broker, *super(Mosquitto, self).prepare(stage, timeline)]


def program(stage: Stage, role: str, *argv: str) -> Program:
    """The program as the keeper needs it."""
    return Program(stage.node(role), argv, stage.stderr(role), environment())
