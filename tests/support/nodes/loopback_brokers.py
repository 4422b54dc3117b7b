"""Real brokers on the loopback in one process, around a core that records the events it gets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from nodes import overlay
from nodes.overlay.base import Action, Peer, Send, Station
from nodes.protocol.wire import Kind, Message
from nodes.runtime.broker import Broker
from nodes.runtime.config import NodeConfig, parse
from nodes.runtime.log import Log
from support.lines import records
from support.ports import HOST, ReservedPorts

PATIENCE_S = 60
RECORDING = "recording"


class RecordingCore:
    """A core that records its events and does nothing, except that it may send publications back."""

    def __init__(self, station: Station, parameters: Mapping[str, Any], random: Random) -> None:
        self.observed: list[tuple[Any, ...]] = []
        self.ready = True
        self.left = True
        self.answers = False  # whether each publication is sent back

    def leave(self, now: float) -> list[Action]:
        self.observed.append(("leave",))
        return []

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        self.observed.append(("up", peer))
        return []

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        self.observed.append(("down", peer, orderly))
        return []

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        self.observed.append(("unreachable", peer))
        return []

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        self.observed.append(("message", peer, message.message_id))
        return [Send(peer, message)] if self.answers else []

    def on_activity(self, peer: Peer, at: float) -> None:
        self.observed.append(("life", peer))

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[Action]:
        return []


class LoopbackBroker:
    """A broker and its core."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.log = Log(config.log, config.name)
        self.broker = Broker(config, self.log)
        core = self.broker.core
        assert isinstance(core, RecordingCore)
        self.core = core
        self.life: asyncio.Task[None] | None = None

    async def go(self) -> "LoopbackBroker":
        self.life = asyncio.create_task(self.broker.run_until_stopped())
        self.broker.go()
        await until(lambda: self.broker.ready)
        return self

    async def stop(self) -> None:
        self.broker.terminate()
        if self.life is not None:
            await self.life

    def send(self, peer: str, number: int = 0, kind: Kind = Kind.PUBLISH, size: int = 0) -> None:
        message = Message(kind, topic="t", message_id=number, payload=bytes(size))
        self.broker.perform([Send(peer, message)])

    def observed(self, *what: Any) -> list[tuple[Any, ...]]:
        """The recorded events that begin with these items."""
        return [record for record in self.core.observed if record[: len(what)] == what]

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [each for each in records(Path(self.config.log)) if each["event"] == event]


async def until(true: Callable[[], Any], every_s: float = 0.005) -> Any:
    """Wait until `true()` is true; return its value. With `every_s=0`, look at it in each turn of the event loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not (value := true()):
            await asyncio.sleep(every_s)
        return value


def configs(folder: Path, number: int, ports: ReservedPorts, **parameters: Any) -> list[NodeConfig]:
    """Configurations of brokers b1, b2, ... that know each other."""
    places = [
        {"name": f"b{i}", "number": i, "host": HOST, "port": ports.reserve()}
        for i in range(1, number + 1)
    ]
    return [
        parse(
            {
                "lab": "slope",
                "run": "r1",
                "name": place["name"],
                "number": place["number"],
                "kind": "broker",
                "control": "ctl",
                "log": str(folder / f"{place['name']}.jsonl"),
                "seed": 1,
                "overlay": {"method": RECORDING, "parameters": parameters},
                "delivery": {"method": "fifo", "parameters": {}},
                "deliveries": {},
                "listen": {"host": place["host"], "port": place["port"]},
                "brokers": [other for other in places if other is not place],
                "seeds": [],
                "topics": [],
                "dimensions": 0,
                "secret": "of the slope",
                "journal": None,
            }
        )
        for place in places
    ]


@asynccontextmanager
async def brokers(
    folder: Path, number: int, **parameters: Any
) -> AsyncIterator[list[LoopbackBroker]]:
    """Start these brokers, and stop them at the end of the test."""
    with ReservedPorts() as ports:
        made = configs(folder, number, ports, **parameters)
        all_of_them = [LoopbackBroker(config) for config in made]
        try:
            yield [await one.go() for one in all_of_them]
        finally:
            for one in all_of_them:
                await one.stop()
                one.log.close()


def install(set_item: Callable[[Any, str, Any], None]) -> None:
    """Register the recording core, so that configurations can name it; `set_item` is pytest's monkeypatch.setitem."""
    set_item(overlay.METHODS.own, RECORDING, RecordingCore)
