"""Mosquitto in the valley: one broker on a fast link in the middle, clients on 3G links, QoS 1.

`two`: each client has another connection for alerts, so that TCP does not queue them behind photographs.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.support.brokers.scene import (
    FAST,
    OFFICES,
    SLOPES,
    SLOW_LINK,
    Arrivals,
    Timelines,
    wanted,
)
from benchmarks.support.brokers.valley import Post
from benchmarks.support.delivery.contestant import MOSQUITTO, Mosquitto, Stage, program
from testbed.keeper.client import NodeProcess, Program

HUB = "mosquitto"
_MODULE = "benchmarks.support.brokers.mqtt_client"


@dataclass(frozen=True, slots=True)
class MqttValley:
    """Mosquitto and its clients."""

    name: str
    two: bool = False

    def check(self) -> None:
        """MissingCapability if the broker or the library is not there."""
        Mosquitto(HUB, "mqtt", ("paho", "paho-mqtt")).check()

    def posts(self) -> Sequence[Post]:
        """A star."""
        return [Post(HUB, FAST), *(Post(client, SLOW_LINK) for client in (*SLOPES, *OFFICES))]

    def prepare(self, stage: Stage, sent: Timelines) -> list[Program | NodeProcess]:
        """Make a folder for each client."""
        from benchmarks.support.delivery.mqtt import CONFIGURATION

        settings = stage.folder / "mosquitto.conf"
        settings.write_text(
            f"{CONFIGURATION}set_tcp_nodelay true\nmax_queued_messages 0\nuser root\n"
        )
        for slope, timeline in sent.items():
            _folder(stage, slope).mkdir()
            text = json.dumps([asdict(due) for due in timeline])
            (_folder(stage, slope) / "timeline.json").write_text(text)
        for office in OFFICES:
            _folder(stage, office).mkdir()
        return [
            program(stage, HUB, MOSQUITTO, "-c", str(settings)),
            *(self._client(stage, slope, "publish") for slope in SLOPES),
            *(self._client(stage, office, "receive", *wanted(office)) for office in OFFICES),
        ]

    def _client(self, stage: Stage, role: str, what: str, *topics: str) -> Program:
        host, connections = stage.addresses[HUB], "two" if self.two else "one"
        argv = (sys.executable, "-m", _MODULE, what, role, connections, host)
        return program(stage, role, *argv, str(_folder(stage, role)), *topics)

    def begin(self, stage: Stage) -> None:
        """Nothing to do: clients try to connect until mosquitto listens."""

    def is_ready(self, stage: Stage) -> bool:
        """Whether all clients report that they are ready."""
        return all((_folder(stage, client) / "ready").exists() for client in (*SLOPES, *OFFICES))

    def play(self, stage: Stage, start_ns: int, sent: Timelines) -> None:
        """Write the file for which the publishers wait, atomically."""
        for slope in SLOPES:
            unfinished = _folder(stage, slope) / "start.new"
            unfinished.write_text(str(start_ns))
            unfinished.rename(_folder(stage, slope) / "start")

    def arrivals(self, stage: Stage) -> Arrivals:
        """Arrivals that the offices recorded; of duplicates the first."""
        found: dict[tuple[str, str, int], int] = {}
        for office in OFFICES:
            lines = (_folder(stage, office) / "received.jsonl").read_text()
            for line in lines.splitlines(keepends=True):
                if line.endswith("\n"):
                    slope, number, at_ns = json.loads(line)
                    found.setdefault((office, slope, number), at_ns)
        return found


def _folder(stage: Stage, role: str) -> Path:
    return stage.folder / role
