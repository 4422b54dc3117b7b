"""node.json: the configuration that the orchestrator writes for a node, and its checks."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from nodes import delivery, overlay
from nodes.overlay.base import BrokerName, Station
from nodes.protocol import interests
from nodes.protocol.kinds import OURS, NodeKind
from nodes.protocol.wire import MAX_DIMENSIONS, MAX_SUBSCRIPTIONS, WireError

MAX_NUMBER = 2**32 - 1  # of a node, as it stands in messages
MAX_SOCKET_PATH = 107  # of a Unix socket, unix(7)


class ConfigError(ValueError):
    """node.json cannot be used; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Method:
    """A chosen overlay or delivery method."""

    method: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A TCP address."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker and where it listens."""

    name: str
    number: int
    at: Endpoint


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The whole configuration of a node."""

    lab: str
    run: str
    name: str
    number: int
    kind: NodeKind
    control: str
    log: str
    seed: int
    overlay: Method
    delivery: Method
    deliveries: Mapping[str, Method]  # a broker's: peer -> its link's method, where it is another
    listen: Endpoint | None
    brokers: tuple[BrokerAddress, ...]  # the others; of a sensor or subscriber, the nearest first
    seeds: tuple[str, ...]  # a broker's: names of those through which it joins
    topics: tuple[str, ...]  # what a subscriber wants: topics, or texts of other interests
    dimensions: int  # of the places of publications; 0: nothing has a place in this lab
    secret: bytes  # of the lab: a node without it is refused
    journal: str | None  # a sensor's: the file of its publications without an acknowledgement
    tcp: str | None = (
        None  # congestion control that it sets; None: as the kernel and the routes do it
    )

    def station(self, incarnation: int = 0) -> Station:
        """The node as its overlay core sees it."""
        names = {broker.name: BrokerName(broker.name, broker.number) for broker in self.brokers}
        return Station(
            self.name,
            self.number,
            tuple(names.values()),
            tuple(names[seed] for seed in self.seeds),
            incarnation,
            self.dimensions,
        )

    def random(self, purpose: str) -> Random:
        """A source of chance for one purpose: the same in each run with the same seed."""
        return Random(f"{self.seed}/{self.name}/{purpose}")


def load(path: str) -> NodeConfig:
    """Read and check the file; ConfigError says what is wrong with it."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs a node memory
            data = json.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    try:
        return parse(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse(data: Any) -> NodeConfig:
    """From JSON values to a configuration that fits together."""
    whole = _Object(data, "")
    kind_name = whole.text("kind")
    if kind_name not in OURS:
        raise ConfigError(f"kind is {kind_name!r}; it must be one of {', '.join(OURS)}")
    config = NodeConfig(
        lab=whole.text("lab"),
        run=whole.text("run"),
        name=whole.text("name"),
        number=whole.number("number", 0, MAX_NUMBER),
        kind=NodeKind(kind_name),
        control=whole.text("control"),
        log=whole.text("log"),
        seed=whole.number("seed", -(2**63), 2**64 - 1),
        overlay=_method(whole, "overlay", overlay.METHODS),
        delivery=_method(whole, "delivery", delivery.METHODS),
        deliveries=_deliveries(whole),
        listen=None if whole.value("listen") is None else _endpoint(whole.object("listen")),
        brokers=tuple(_broker(place) for place in whole.objects("brokers")),
        seeds=tuple(whole.texts("seeds")),
        topics=_topics(whole.texts("topics")),
        dimensions=whole.number("dimensions", 0, MAX_DIMENSIONS),
        secret=whole.text("secret").encode(),
        journal=None if whole.value("journal") is None else whole.text("journal"),
        tcp=whole.optional_text("tcp"),
    )
    if config.kind is NodeKind.BROKER and config.listen is None:
        raise ConfigError("a broker needs `listen` with host and port")
    if config.kind is not NodeKind.BROKER and not config.brokers:
        raise ConfigError(f"a {config.kind} needs at least one entry in `brokers`")
    if unknown := set(config.seeds).difference(broker.name for broker in config.brokers):
        raise ConfigError(f"seeds names {min(unknown)!r}, which is not in `brokers`")
    if len(config.control.encode()) > MAX_SOCKET_PATH:
        raise ConfigError(
            f"control has a path of more than {MAX_SOCKET_PATH} bytes; take a shorter one"
        )
    return config


class _Object:
    """A JSON object with checked access to its members; `where` names it in errors."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, dict):
            raise ConfigError(f"{where or 'the file'} must be a JSON object")
        self._data = data
        self.prefix = f"{where}." if where else ""

    def value(self, name: str) -> Any:
        if name not in self._data:
            raise ConfigError(f"{self.prefix}{name} is missing")
        return self._data[name]

    def text(self, name: str) -> str:
        value = self.value(name)
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{self.prefix}{name} is {value!r}; it must be a text, not empty")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._data.get(name) is None else self.text(name)

    def number(self, name: str, least: int, most: int) -> int:
        value = self.value(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ConfigError(
                f"{self.prefix}{name} is {value!r}; it must be a whole number from {least} to {most}"
            )
        return value

    def object(self, name: str) -> "_Object":
        return _Object(self.value(name), f"{self.prefix}{name}")

    def objects(self, name: str) -> "list[_Object]":
        values = self.value(name)
        if not isinstance(values, list):
            raise ConfigError(f"{self.prefix}{name} must be a list")
        return [_Object(item, f"{self.prefix}{name}[{i}]") for i, item in enumerate(values)]

    def texts(self, name: str) -> list[str]:
        values = self.value(name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ConfigError(f"{self.prefix}{name} must be a list of texts")
        return values

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.value(name)
        if not isinstance(value, dict):
            raise ConfigError(f"{self.prefix}{name} must be a JSON object")
        return value


def _endpoint(data: _Object) -> Endpoint:
    return Endpoint(data.text("host"), data.number("port", 1, 65535))


def _broker(data: _Object) -> BrokerAddress:
    number = data.number("number", 0, MAX_NUMBER)
    return BrokerAddress(data.text("name"), number, _endpoint(data))


def _method(whole: _Object, name: str, known: Collection[str]) -> Method:
    data = whole.object(name)
    method = data.text("method")
    if method not in known:
        raise ConfigError(f"{data.prefix}method is {method!r}; this node knows {', '.join(known)}")
    return Method(method, data.mapping("parameters"))


def _deliveries(whole: _Object) -> dict[str, Method]:
    of_peers = whole.object("deliveries")
    return {peer: _method(of_peers, peer, delivery.METHODS) for peer in whole.mapping("deliveries")}


def _topics(values: list[str]) -> tuple[str, ...]:
    for value in values:
        try:
            interests.parse(value)
        except WireError as error:
            raise ConfigError(f"topics: {error}") from error
    topics = tuple(dict.fromkeys(values))
    if len(topics) > MAX_SUBSCRIPTIONS:
        raise ConfigError(f"topics has {len(topics)}; at most {MAX_SUBSCRIPTIONS} are possible")
    return topics
