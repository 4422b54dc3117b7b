"""Our own nodes: sensor, broker, and a subscriber behind the line (or two, one for urgent messages only)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.support.delivery.contestant import Stage
from benchmarks.support.delivery.traffic import Due
from testbed.backends.node_files import BROKER_PORT
from testbed.control import ControlError, request
from testbed.jsonfiles import write_json
from testbed.keeper.client import NodeProcess, Program

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
        """One node, or one a connection."""
        return tuple(self.listeners)

    def check(self) -> None:
        """All is here."""

    def prepare(self, stage: Stage, timeline: Sequence[Due]) -> list[Program | NodeProcess]:
        """A node.json each."""
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
        """Through the gate."""
        for role in (*self.near, *self.far):
            request(stage.lab.node_control(stage.node(role)), {"do": "go"})

    def is_ready(self, stage: Stage) -> bool:
        """All nodes say so."""
        controls = [stage.lab.node_control(stage.node(role)) for role in (*self.near, *self.far)]
        with suppress(ControlError):
            return all(request(control, {"do": "status"})["ready"] for control in controls)
        return False

    def play(self, stage: Stage, start_ns: int, timeline: Sequence[Due]) -> None:
        """The sensor does it itself."""
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
        """From the nodes' logs; the sensor's tells in which order the messages were made."""
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
    """The whole lines of a log that may still grow."""
    for line in log.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)
