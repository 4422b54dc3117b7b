"""What a scenario that waits for something sees of a real lab: logs as they grow, and the places of brokers."""

import json
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any

from testbed.control import request_all
from testbed.places import LabPlace
from testbed.records import LabRecord
from testbed.scenario.triggers import Reception, place_in_overlay, reception
from testbed.topology.model import NodeKind, Topology

LOOK_S = 0.02  # how often logs are looked at
ASK_NS = 1_000_000_000  # how often brokers are asked
_MARK = b'"receive"'


class Senses:
    """Eyes and ears of one scenario. What was logged before the first look counts only from the scenario's start on."""

    def __init__(self, record: LabRecord, topology: Topology) -> None:
        place = LabPlace.of(record.name)
        self._logs = {
            node.name: record.run_place.log(node.name)
            for node in topology.of_kind(NodeKind.SUBSCRIBER)
        }
        self._brokers = {
            node.name: place.node_control(node.name) for node in topology.of_kind(NodeKind.BROKER)
        }
        self._read = {
            name: path.stat().st_size if path.exists() else 0 for name, path in self._logs.items()
        }
        self._asked_ns: int | None = None

    def receptions(self, start_ns: int) -> list[Reception]:
        """Those since the last look."""
        seen = (reception(line, start_ns) for line in self._new_lines())
        return [each for each in seen if each is not None]

    def time_to_ask(self, now_ns: int) -> bool:
        """Whether the brokers were not asked lately; they are then."""
        if self._asked_ns is not None and now_ns - self._asked_ns < ASK_NS:
            return False
        self._asked_ns = now_ns
        return True

    def overlay(self) -> Hashable:
        """Where the brokers are, all together; None if nobody answers. Who is down has no place."""
        answers = request_all(self._brokers, {"do": "overlay"})
        places = ((name, place_in_overlay(answers[name]["overlay"])) for name in sorted(answers))
        return tuple(places) or None

    def _new_lines(self) -> Iterator[dict[str, Any]]:
        for name, path in self._logs.items():
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if size <= self._read[name]:
                continue
            with path.open("rb") as file:
                file.seek(self._read[name])
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]  # a line that is half written waits
            self._read[name] += len(whole)
            for line in whole.splitlines():
                if _MARK in line:
                    with suppress(ValueError):  # torn by a crash
                        yield json.loads(line)
