"""Programs of others as contestants."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.support.delivery.contestant import Stage
from benchmarks.support.delivery.traffic import Due
from testbed.errors import MissingCapability
from testbed.keeper.client import NodeProcess, Program, environment

MOSQUITTO = "/usr/sbin/mosquitto"  # Debian's place, which is not in every user's path
EXTRA = "install it with `pip install -e '.[benchmarks]'`"
_PROGRAMS = "benchmarks.support.delivery"


@dataclass(frozen=True, slots=True)
class Peer:
    """A publisher on one side, a receiver on the other; both are modules of ours around somebody's library."""

    name: str
    module: str
    needs: tuple[str, str]  # a Python package: as it is imported, and as it is installed
    settings: Mapping[str, Any] = field(default_factory=dict)
    near: tuple[str, ...] = ("publisher",)
    far: tuple[str, ...] = ("receiver",)
    sender: str = "publisher"

    def check(self) -> None:
        """MissingCapability if its library is not there."""
        module, package = self.needs
        if importlib.util.find_spec(module) is None:
            raise MissingCapability(f"the Python package {package} is missing", EXTRA)

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """Both programs read the folder."""
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
        """They try by themselves until the other side is there."""

    def is_ready(self, stage: Stage) -> bool:
        """Both say so."""
        return all((stage.folder / f"{role}.ready").exists() for role in ("publisher", "receiver"))

    def play(self, stage: Stage, start_ns: int, timeline: Sequence[Due]) -> None:
        """The publisher waits for this file, whole."""
        unfinished = stage.folder / "start.new"
        unfinished.write_text(str(start_ns))
        unfinished.rename(stage.folder / "start")

    def arrivals(self, stage: Stage) -> dict[int, int]:
        """As the receiver notes them."""
        lines = (stage.folder / "received.jsonl").read_text().splitlines(keepends=True)
        noted = [json.loads(line) for line in lines if line.endswith("\n")]
        return {one["number"]: one["at_ns"] for one in noted}


@dataclass(frozen=True, slots=True)
class Mosquitto(Peer):
    """MQTT has a broker, which is what feeds the line."""

    near: tuple[str, ...] = ("publisher", "mosquitto")
    sender: str = "mosquitto"

    def check(self) -> None:
        """MissingCapability if the broker or the library is not there."""
        if shutil.which(MOSQUITTO) is None:
            raise MissingCapability("mosquitto is missing", "`apt-get install mosquitto` has it")
        super(Mosquitto, self).check()

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """The broker, too."""
        from benchmarks.support.delivery.mqtt import CONFIGURATION

        settings = stage.folder / "mosquitto.conf"
        settings.write_text(CONFIGURATION + f"pid_file {stage.folder}/mosquitto.pid\nuser root\n")
        broker = program(stage, "mosquitto", MOSQUITTO, "-c", str(settings))
        return [broker, *super(Mosquitto, self).prepare(stage, timeline)]


def program(stage: Stage, role: str, *argv: str) -> Program:
    """As the keeper wants it."""
    return Program(stage.node(role), argv, stage.stderr(role), environment())
