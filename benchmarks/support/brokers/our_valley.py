"""Our nodes in the valley: several brokers that form an overlay, preemptive on all links.

`halls`: brokers are at the place of mosquitto, on fast links, and clients connect to them over their 3G links. `sites`:
there is no broker in the middle; each site has a broker of its own behind the 3G link that it shares with the client.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.support.brokers.scene import (
    ALERTS,
    FAST,
    OFFICES,
    PHOTOGRAPHS,
    SLOPES,
    SLOW_LINK,
    Arrivals,
    Timelines,
    topic,
    wanted,
)
from benchmarks.support.brokers.valley import Post
from benchmarks.support.delivery.contestant import Stage
from testbed.backends.common.node_config import BROKER_PORT, SEEDS
from testbed.control import request, request_all
from testbed.jsonfiles import write_json
from testbed.keeper.client import NodeProcess, Program

HALLS, SITES = "halls", "sites"
IN_HALLS = 4  # brokers
METHOD, DELIVERY = "fan-tbps", "preemptive"
LEVELS = {ALERTS: 5, PHOTOGRAPHS: 1}
CLIENTS = (*SLOPES, *OFFICES)


@dataclass(frozen=True, slots=True)
class OurValley:
    """Our stack, with brokers in one of the two places."""

    layout: str

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"testbed, {self.layout}"

    def check(self) -> None:
        """Nothing to check: all of it is part of this project."""

    def posts(self) -> Sequence[Post]:
        """Clients on 3G links, brokers on fast ones; or both behind one link."""
        if self.layout == HALLS:
            brokers = [Post(name, FAST) for name in self._brokers]
            return [*brokers, *(Post(client, SLOW_LINK) for client in CLIENTS)]
        return [
            post
            for client, broker in zip(CLIENTS, self._brokers, strict=True)
            for post in (
                Post(_router(client), SLOW_LINK, router=True),
                Post(broker, None, behind=_router(client)),
                Post(client, None, behind=_router(client)),
            )
        ]

    @property
    def _brokers(self) -> list[str]:
        count = IN_HALLS if self.layout == HALLS else len(CLIENTS)
        return [f"broker{number}" for number in range(count)]

    def _homes(self, client: str) -> list[str]:
        """The brokers of a client: those of neighbours differ, so that all alerts cross the overlay."""
        brokers = self._brokers
        first = CLIENTS.index(client) % len(brokers)
        return brokers[first:] + brokers[:first]

    def prepare(self, stage: Stage, sent: Timelines) -> list[Program | NodeProcess]:
        """Write a node.json for each node."""
        roles = [*self._brokers, *CLIENTS]
        numbers = {role: number for number, role in enumerate(roles, start=1)}
        return [
            NodeProcess(
                stage.node(role), self._configured(stage, role, numbers), stage.stderr(role)
            )
            for role in roles
        ]

    def _configured(self, stage: Stage, role: str, numbers: dict[str, int]) -> Path:
        lab, name = stage.lab, stage.node(role)
        lab.node(name).mkdir(parents=True)
        is_broker = role in self._brokers
        known = [b for b in self._brokers if b != role] if is_broker else self._homes(role)
        config = {
            "lab": lab.name,
            "run": "benchmark",
            "name": name,
            "number": numbers[role],
            "kind": "broker" if is_broker else "sensor" if role in SLOPES else "subscriber",
            "control": str(lab.node_control(name)),
            "log": str(_log(stage, role)),
            "seed": 1,
            "overlay": {"method": METHOD, "parameters": {}},
            "delivery": {"method": DELIVERY, "parameters": {}},
            "deliveries": {},
            "listen": {"host": stage.addresses[role], "port": BROKER_PORT} if is_broker else None,
            "brokers": [
                {
                    "name": stage.node(broker),
                    "number": numbers[broker],
                    "host": stage.addresses[broker],
                    "port": BROKER_PORT,
                }
                for broker in known
            ],
            "seeds": [stage.node(b) for b in self._brokers[:SEEDS] if is_broker and b != role],
            "topics": list(wanted(role)) if role in OFFICES else [],
            "dimensions": 0,
            "secret": "benchmark",
            "journal": str(lab.node(name) / "journal") if role in SLOPES else None,
        }
        write_json(lab.node_config(name), config, indent=None)
        return lab.node_config(name)

    def begin(self, stage: Stage) -> None:
        """Open the gates, brokers first."""
        for role in (*self._brokers, *CLIENTS):
            request(stage.lab.node_control(stage.node(role)), {"do": "go"})

    def is_ready(self, stage: Stage) -> bool:
        """Whether all nodes report that they are ready."""
        controls = {
            role: stage.lab.node_control(stage.node(role)) for role in (*self._brokers, *CLIENTS)
        }
        answers = request_all(controls, {"do": "status"})
        return len(answers) == len(controls) and all(a["ready"] for a in answers.values())

    def play(self, stage: Stage, start_ns: int, sent: Timelines) -> None:
        """Let the sensors play the timeline themselves."""
        for slope, timeline in sent.items():
            actions = [
                {
                    "at_ns": due.at_ns,
                    "topic": topic(due),
                    "priority": LEVELS[topic(due)],
                    "size": due.size,
                }
                for due in timeline
            ]
            control = stage.lab.node_control(stage.node(slope))
            request(control, {"do": "play", "start_ns": start_ns, "actions": actions}, 60.0)

    def arrivals(self, stage: Stage) -> Arrivals:
        """Arrivals from the nodes' logs; the sensors' logs give the order in which the messages were made."""
        made = {
            event["id"]: (slope, number)
            for slope in SLOPES
            for number, event in enumerate(_events(_log(stage, slope), "publish"))
        }
        return {
            (office, *made[event["id"]]): int(event["t"])
            for office in OFFICES
            for event in _events(_log(stage, office), "receive")
        }


def _router(client: str) -> str:
    return f"{client}-line"


def _log(stage: Stage, role: str) -> Path:
    return stage.folder / f"{role}.jsonl"


def _events(log: Path, kind: str) -> Iterable[dict[str, Any]]:
    """Events of one kind, from the complete lines of a log that may still grow."""
    for line in log.read_text().splitlines(keepends=True):
        if line.endswith("\n") and (event := json.loads(line))["event"] == kind:
            yield event
