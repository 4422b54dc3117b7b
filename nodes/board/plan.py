"""The `tc` commands for a board's link settings, as lists of arguments. Pure.

    interface, root        htb: what no filter takes passes at once (its direct queue)
      filter               packets to a peer: class 7bed:1, without a limit of its own
        class 7bed:1       the direction `up`
    interface, ingress
      filter               packets of a peer: to the ifb device, and back from there
    ifb device, root       the direction `down`

Each is a `tbf`, a `blackhole` (cut), or a `netem` in a `prio` whose filter is the queue in bytes: see the links of
the lab's own machine, whose numbers these are (testbed/links/{sizes,shaping,waiting_room}.py,
docs/explanation/links.md).
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from ipaddress import IPv4Network, collapse_addresses
from pathlib import Path
from typing import Any

from nodes.board.bpf import ALL, IP_DESTINATION, IP_SOURCE, as_text, peers_only
from nodes.board.errors import WrongInput
from nodes.board.links import LinkDirection, Links

Command = tuple[str, ...]

# Our handles; the number of a root discipline marks it as ours. One for each kind: the kernel refuses to change the
# kind of a discipline.
OUTER, QUEUE, NETEM, TBF, CUT = "7bed:", "7be0:", "7be1:", "7be2:", "7be3:"
INGRESS = "ffff:"
PEERS_CLASS = f"{OUTER}1"
ALL_TO_THE_FIRST = ("prio", "bands", "2", "priomap", *("0",) * 16)
ETHERNET_HEADER = 14
SMALLEST_BURST = 1600  # bytes; below a full frame tbf drops every full-size packet
BURST_S = 0.0005
SMALLEST_QUEUE = 16  # packets
QUEUE_S = 1.0
UNLIMITED_BPS = 100e9  # netem keeps packets in order only when it has a rate
MANY_PACKETS = 100_000  # netem's own limit; the queue is limited in bytes, in front of it
_DIRECT_QUEUE = 1000  # packets to and from other addresses, as in front of any interface
_LONGEST_WAIT_S = 250  # the maximum of a policer
_LONGEST_PACKET = 65_535


@dataclass(frozen=True, slots=True)
class Kernel:
    """The abilities of this board's kernel; `bpf`: it takes our programs; without them we use u32."""

    netem: bool
    bpf: bool


@dataclass(frozen=True, slots=True)
class Discipline:
    """A queueing discipline, and the classes that it has."""

    device: str
    parent: str  # "root", "ingress" or a class
    handle: str
    options: Command
    classes: tuple[Command, ...] = ()
    lasting: bool = False  # it cannot be changed, and need not be

    def commands(self) -> list[Command]:
        """The commands that create it, or change its options."""
        place = (self.parent,) if self.parent in ("root", "ingress") else ("parent", self.parent)
        handle = () if self.parent == "ingress" else ("handle", self.handle, *self.options)
        return [
            ("tc", "qdisc", "replace", "dev", self.device, *place, *handle),
            *(("tc", "class", "replace", "dev", self.device, *one) for one in self.classes),
        ]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of `tc`: which packets go to which class or device."""

    device: str
    parent: str
    preference: int
    options: Command

    def command(self) -> Command:
        """The command that adds it."""
        place = ("dev", self.device, "parent", self.parent)
        choice = ("protocol", "ip", "pref", str(self.preference))
        return ("tc", "filter", "add", *place, *choice, *self.options)


@dataclass(frozen=True, slots=True)
class Plan:
    """All disciplines and filters of a link; filters are added after the disciplines, those of peers last."""

    disciplines: tuple[Discipline, ...]
    policers: tuple[Filter, ...]
    peers: tuple[Filter, ...]

    @property
    def digest(self) -> str:
        """Of everything: the same plan, the same digest."""
        return _digest([*self._made(), *(one.command() for one in self.peers)])

    @property
    def peers_digest(self) -> str:
        """Of the filters of the peers."""
        return _digest([one.command() for one in self.peers])

    def commands(self) -> list[Command]:
        """All commands for an interface that is not shaped yet."""
        return [*self._made(), *(one.command() for one in self.peers)]

    def _made(self) -> list[Command]:
        made = [command for one in self.disciplines for command in one.commands()]
        return made + [one.command() for one in self.policers]


def plan(links: Links, ifb: str, mtu: int, kernel: Kernel) -> Plan:
    """The plan for the settings of the file; the caller has checked that the kernel can do it (`lacking`)."""
    disciplines: list[Discipline] = []
    policers: list[Filter] = []
    peers: list[Filter] = []
    device = links.interface
    if not links.up.open:
        peers_class = ("parent", OUTER, "classid", PEERS_CLASS, "htb", "rate", "100gbit",
                       "burst", "1000000", "cburst", "1000000", "quantum", "20000")  # fmt: skip
        outer = ("htb", "direct_qlen", str(_DIRECT_QUEUE))
        disciplines.append(Discipline(device, "root", OUTER, outer, (peers_class,), lasting=True))
        _add_direction(links.up, device, PEERS_CLASS, mtu, kernel, disciplines, policers)
        to_class = ("flowid", PEERS_CLASS)
        peers += _of_peers(device, OUTER, links.peers, IP_DESTINATION, to_class, kernel)
    if not links.down.open:
        _add_direction(links.down, ifb, "root", mtu, kernel, disciplines, policers)
        disciplines.append(Discipline(device, "ingress", INGRESS, ("ingress",), lasting=True))
        to_ifb = ("flowid", ":1", "action", "mirred", "egress", "redirect", "dev", ifb)
        peers += _of_peers(device, INGRESS, links.peers, IP_SOURCE, to_ifb, kernel)
    return Plan(tuple(disciplines), tuple(policers), tuple(peers))


def lacking(links: Links, kernel: Kernel) -> str:
    """Settings that this kernel cannot provide; empty if there are none."""
    for direction, link in (("up", links.up), ("down", links.down)):
        if link.more_than_rate and not link.cut and not kernel.netem:
            return (
                f"`{direction}` asks for delay, jitter or loss, and this kernel has no netem "
                "(the modules sch_netem, sch_prio and act_police); without it only rates can be shaped"
            )
    return ""


def queue_bytes(link: LinkDirection, mtu: int) -> int:
    """The size of the queue in front of a link: as set, else one second's worth, at least 16 packets."""
    if link.queue_bytes is not None:
        return link.queue_bytes
    smallest = SMALLEST_QUEUE * (mtu + ETHERNET_HEADER)
    return max(smallest, math.ceil((link.rate_bps or 0) / 8 * QUEUE_S))


def tbf_burst(rate_bps: float, mtu: int, asked: int | None) -> int:
    """The burst of a token bucket: as set, but at least one full frame."""
    if asked is not None:
        return max(asked, mtu + ETHERNET_HEADER)
    return max(SMALLEST_BURST, mtu + ETHERNET_HEADER, math.ceil(rate_bps / 8 * BURST_S))


def _add_direction(
    link: LinkDirection, device: str, parent: str, mtu: int, kernel: Kernel,
    disciplines: list[Discipline], policers: list[Filter],
) -> None:  # fmt: skip
    if link.cut:
        disciplines.append(Discipline(device, parent, CUT, ("blackhole",)))
        return
    rate = max(1, round((link.rate_bps or UNLIMITED_BPS) / 8))
    if not kernel.netem:
        burst = tbf_burst(rate * 8, mtu, link.burst_bytes)
        limit = max(queue_bytes(link, mtu), burst)
        options = ("rate", f"{rate * 8}bit", "burst", str(burst), "limit", str(limit))
        disciplines.append(Discipline(device, parent, TBF, ("tbf", *options)))
        return
    disciplines.append(Discipline(device, parent, QUEUE, ALL_TO_THE_FIRST))
    disciplines.append(Discipline(device, f"{QUEUE}1", NETEM, _netem(link, rate)))
    capacity = rate if link.rate_bps is None else queue_bytes(link, mtu) + mtu + ETHERNET_HEADER
    capacity = min(capacity, rate * _LONGEST_WAIT_S, (1 << 32) - 1)
    police = ("action", "police", "rate", f"{rate * 8}bit", "burst", str(capacity),
              "mtu", str(_LONGEST_PACKET), "conform-exceed", "drop/pass")  # fmt: skip
    every = ("bpf", "bytecode", as_text(ALL)) if kernel.bpf else ("u32", "match", "u32", "0", "0")
    policers.append(Filter(device, QUEUE, 1, (*every, "flowid", f"{QUEUE}1", *police)))


def _netem(link: LinkDirection, rate: int) -> Command:
    loss = ("loss", "random", f"{link.loss * 100:.7f}%") if link.loss else ()
    # Not in nanoseconds, which tc's netem does not take.
    times = [f"{seconds * 1e6:.3f}us" for seconds in (link.delay_s, link.jitter_s) if seconds]
    delay = ("delay", *times) if times else ()
    limits = ("limit", str(MANY_PACKETS), "rate", f"{rate * 8}bit")
    return ("netem", *limits, *delay, *loss)


def _of_peers(
    device: str, parent: str, peers: tuple[IPv4Network, ...], place: int, goal: Command,
    kernel: Kernel,
) -> Iterator[Filter]:  # fmt: skip
    if kernel.bpf:
        for preference, program in enumerate(peers_only(peers, place), start=1):
            yield Filter(device, parent, preference, ("bpf", "bytecode", as_text(program), *goal))
        return
    side = "src" if place == IP_SOURCE else "dst"
    for network in collapse_addresses(peers):
        yield Filter(device, parent, 1, ("u32", "match", "ip", side, str(network), *goal))


def _digest(commands: list[Command]) -> str:
    return sha256(repr(commands).encode()).hexdigest()[:12]


# The note of a shaped link: the alias of its ifb device, so that the note lasts as long as the shaping.
#
# It names the links file, the state of the interface before shaping, and the plan. A restart of the board removes it.


PREFIX = "tb"
_LONGEST = 255  # bytes the kernel keeps


@dataclass(frozen=True, slots=True)
class Note:
    """Of the links file `testbed`; an empty `plan`: it is not whole (yet)."""

    testbed: str
    interface: str
    offloads: tuple[str, ...]  # that were on
    segments: int  # of gso_max_segs
    kernel: Kernel
    down: bool = False  # packets of peers come through the ifb device
    plan: str = ""
    peers: str = ""


def device_name(path: Path, interface: str) -> str:
    """Of the ifb device; the same for the same file and interface."""
    return PREFIX + sha256(f"{interface}\0{path}".encode()).hexdigest()[:10]


def write_note(note: Note) -> str:
    """As an alias."""
    data = asdict(note)
    kernel = "+".join(name for name, has in data["kernel"].items() if has)
    offloads = "+".join(note.offloads)
    text = json.dumps({**data, "kernel": kernel, "offloads": offloads}, separators=(",", ":"))
    if len(text.encode()) > _LONGEST:
        raise WrongInput(f"the path {note.testbed} is too long; 80 characters are a good length")
    return text


def read_note(alias: str) -> Note | None:
    """None if it is not ours."""
    try:
        data: Any = json.loads(alias)
        kernel = data["kernel"].split("+")
        return Note(
            testbed=str(data["testbed"]),
            interface=str(data["interface"]),
            offloads=tuple(name for name in data["offloads"].split("+") if name),
            segments=int(data["segments"]),
            kernel=Kernel(netem="netem" in kernel, bpf="bpf" in kernel),
            down=bool(data["down"]),
            plan=str(data["plan"]),
            peers=str(data["peers"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
