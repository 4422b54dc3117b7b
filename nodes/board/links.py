"""links.json: the settings of a board's link, toward its peers and from them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from nodes.board.errors import WrongInput

_LONGEST_NAME = 15  # of an interface
_NUMBERS = ("rate_bps", "delay_s", "jitter_s", "loss", "queue_bytes", "burst_bytes")


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """One direction, as in the topology's model; None: not limited, or the default."""

    rate_bps: float | None = None
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    queue_bytes: int | None = None
    burst_bytes: int | None = None
    cut: bool = False

    @property
    def more_than_rate(self) -> bool:
        """Whether it needs netem."""
        return bool(self.delay_s or self.jitter_s or self.loss)

    @property
    def open(self) -> bool:
        """Whether it is not limited at all."""
        return not (self.cut or self.more_than_rate) and self.rate_bps is None


@dataclass(frozen=True, slots=True)
class Links:
    """What is shaped: an interface, whose traffic, and how."""

    interface: str
    peers: tuple[IPv4Network, ...]
    up: LinkDirection
    down: LinkDirection

    @property
    def open(self) -> bool:
        """Whether nothing is to be shaped."""
        return not self.peers or (self.up.open and self.down.open)


def read_links(path: Path) -> Links:
    """The file, checked; WrongInput says what is wrong with it."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise WrongInput(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WrongInput(f"{path} is not JSON: {error}") from error
    try:
        return parse_links(data)
    except WrongInput as error:
        raise WrongInput(f"{path}: {error}") from error


def parse_links(data: Any) -> Links:
    """The same from its JSON."""
    if not isinstance(data, dict):
        raise WrongInput("it must be an object")
    if unknown := sorted(data.keys() - {"interface", "peers", "up", "down"}):
        raise WrongInput(f"unknown: {', '.join(unknown)}")
    interface, peers = data.get("interface"), data.get("peers")
    if not isinstance(interface, str) or not _is_a_name(interface):
        raise WrongInput(f"interface {interface!r} is not the name of an interface")
    if not isinstance(peers, list):
        raise WrongInput("peers must be a list of IPv4 addresses and prefixes")
    return Links(
        interface,
        tuple(map(_peer, peers)),
        _direction("up", data.get("up", {})),
        _direction("down", data.get("down", {})),
    )


def _is_a_name(text: str) -> bool:
    """Whether the kernel accepts it, and `tc` and `ip` do not read it as an option."""
    fits = 0 < len(text.encode()) <= _LONGEST_NAME and text not in (".", "..")
    return fits and text[0] != "-" and not any(one in "/:" or one.isspace() for one in text)


def _peer(text: Any) -> IPv4Network:
    try:
        if not isinstance(text, str):
            raise ValueError("not a text")
        return IPv4Network(text)
    except ValueError as error:
        raise WrongInput(
            f"peer {text!r} is not an IPv4 address or prefix (such as 10.77.0.0/16)"
        ) from error


def _direction(direction: str, data: Any) -> LinkDirection:
    if not isinstance(data, dict):
        raise WrongInput(f"{direction} must be an object")
    if unknown := sorted(data.keys() - {*_NUMBERS, "cut"}):
        raise WrongInput(f"unknown in {direction}: {', '.join(unknown)}")
    cut = data.get("cut", False)
    if not isinstance(cut, bool):
        raise WrongInput(f"{direction}: cut must be true or false")
    rate = _number(direction, data, "rate_bps")
    if rate == 0:
        raise WrongInput(f"{direction}: rate_bps is 0; a line that lets nothing pass is cut: true")
    delay, jitter, loss = (
        _number(direction, data, name) or 0.0 for name in ("delay_s", "jitter_s", "loss")
    )
    if loss > 1:
        raise WrongInput(f"{direction}: loss {loss} is more than all packets (1)")
    if jitter > delay:
        raise WrongInput(f"{direction}: a jitter of {jitter} s is more than the delay, {delay} s")
    return LinkDirection(
        rate, delay, jitter, loss, _bytes(direction, data, "queue_bytes"),
        _bytes(direction, data, "burst_bytes"), cut,
    )  # fmt: skip


def _number(direction: str, data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise WrongInput(f"{direction}: {name} must be a number from 0 on, not {value!r}")
    return float(value)


def _bytes(direction: str, data: Mapping[str, Any], name: str) -> int | None:
    value = _number(direction, data, name)
    if value is None:
        return None
    if not 1 <= value < 1 << 31 or value != int(value):
        raise WrongInput(f"{direction}: {name} must be a whole number of bytes, not {value!r}")
    return int(value)
