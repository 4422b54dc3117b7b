"""Thousands of damaged captures: properties of the readers and decoders that hold for any bytes.

A case is a number. It chooses a seed file of the corpus, the damage, and the way of reading, so that the number is
enough to repeat the case. `python -m tests.fuzz` tries as many cases as fit into the time.
"""

import gzip
import random
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.captures.files import compression_of
from analysis.captures.packets import parse
from analysis.captures.pieces import split_files, split_records
from analysis.errors import AnalysisError
from analysis.protocols.link import TOTALS, read_link
from analysis.protocols.messages import LinkPlace, read_messages
from analysis.protocols.websocket import scan_frames
from analysis.streams.reassembly import reassemble
from nodes.protocol import wire
from nodes.protocol.joined import join
from support.captures.capture_files import (
    START_NS,
    Captured,
    Interface,
    Pcapng,
    pcap,
    read_all,
    records,
)
from support.captures.labelled_streams import STYLES, write_mixed
from support.runs.star_runs import MS, Captures, Connection, Host, Publication, StarRun, arp, frame

BROKER, TOWN = Host("broker", 1, "10.77.0.1"), Host("town", 2, "10.77.0.2")
PLACE = LinkPlace(
    "town",
    0x0A4D0002,
    int.from_bytes(TOWN.mac),
    {0x0A4D0001: "broker", 0x0A4D0002: "town"},
    {1: "broker", 2: "town"},
)
LAYERS = [
    field.name
    for field in TOTALS
    if field.name.endswith("_bytes")
    and field.name not in ("wire_bytes", "missing_bytes", "lost_tail_bytes")
]
NUMBERS = (0, 1, 2, 4, 15, 16, 17, 24, 125, 126, 127, 255, 1500, 2**16 - 1, 2**18, 2**31, 2**32 - 1)
LOOK_BACK = 6_000
SLOW_S = 20.0  # no case has more than some hundred kilobytes: nothing may take so long


@dataclass(frozen=True, slots=True)
class Case:
    """A damaged file, and the random generator that decides how it is read."""

    name: str
    data: bytes
    chance: random.Random


class Wrong(AssertionError):
    """A property that must hold does not hold."""


def case(number: int) -> Case:
    """The case of this number."""
    chance = random.Random(number)
    name, data = chance.choice(corpus())
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        data = _damaged(data, chance)
    return Case(name, data, chance)


def check(one: Case, folder: Path) -> None:
    """Read the case in every way; raise Wrong, or whatever a reader raises, if a property does not hold."""
    began = time.process_time()
    path = folder / "fuzzed"
    path.write_bytes(one.data)
    if one.name.startswith("stream"):
        _check_stream(one)
    else:
        _check_file(one, path)
        if not compression_of(one.data):
            _check_link(one)
    if (took := time.process_time() - began) > SLOW_S:
        raise Wrong(f"it took {took:.0f} s of the processor")


def _check_file(one: Case, path: Path) -> None:
    """Check that each byte is read or reported as damaged: in one go, in small windows and in pieces."""
    whole, packed = read_all(path), compression_of(one.data)
    _must(packed or whole.accounted == len(one.data), "bytes were passed over in silence")
    window = one.chance.choice((64, 1000, 30_000))
    _must(read_all(path, window=window) == whole, f"windows of {window} bytes read something else")
    if packed:
        return
    for pieces in (
        split_files([str(path)], one.chance.randrange(200, 20_000)),
        split_records(str(path), _places(one), LOOK_BACK) if _is_pcap(one.data) else [],
    ):
        if pieces:
            divided = read_all(path, pieces)
            _must(divided.accounted == len(one.data), "pieces pass over bytes, or read them twice")


def _check_link(one: Case) -> None:
    """Check that the layers of a link's packets add up to the bytes on the wire, however the work is divided."""
    try:
        packets = parse(one.data)
    except AnalysisError:
        return  # another format, or no Ethernet
    shards = one.chance.choice((1, 1, 2, 3))
    for shard in range(shards):
        sightings, totals, *_ = read_link(packets, PLACE, shard, shards)
        _must(not len(sightings) or sightings.validate(full=True) is None, "no column")
        for row in totals.to_pylist():
            layers = sum(row[name] for name in LAYERS)
            _must(layers == row["wire_bytes"], f"layers of {layers} in {row['wire_bytes']} bytes")


def _check_stream(one: Case) -> None:
    """Check reassembly of segments in any order, with some missing, some repeated and some cut."""
    chance, data = one.chance, one.data
    begin = sorted({0, *(chance.randrange(len(data) or 1) for _ in range(chance.randrange(40)))})
    parts = [(a, b) for a, b in pairwise([*begin, len(data)]) if chance.random() < 0.95]
    parts += [chance.choice(parts) for _ in range(chance.randrange(3)) if parts]
    if chance.random() < 0.5:
        chance.shuffle(parts)
    at = np.array([a for a, _ in parts], np.int64)
    length = np.array([b - a for a, b in parts], np.int64)
    cut_to = chance.choice((10**6, 10**6, 60))
    opening = chance.choice((0, None))
    stream = reassemble(
        data,
        at & 0xFFFFFFFF,
        length,
        np.minimum(length, cut_to),
        at,
        START_NS + np.arange(len(at)) * MS,
        opening,
    )
    _must(stream.covered_bytes <= len(stream.data), "more bytes than the stream has")
    found = scan_frames(stream.data, stream.unknown, stream.from_start)
    for (_, _, end), (begin_next, _, _) in pairwise(found.frames):
        _must(end <= begin_next, "frames that overlap")
    messages = read_messages(stream, found)
    _must(bool((messages.payload_seen >= 0).all()), "fewer bytes than none")
    _must(bool((messages.last_ns >= messages.first_ns).all()), "ended before it began")


def _must(holds: object, otherwise: str) -> None:
    if not holds:
        raise Wrong(otherwise)


def _is_pcap(data: bytes) -> bool:
    return len(data) > 24 and data[:4] in (b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")


def _places(one: Case) -> list[int]:
    return [one.chance.randrange(len(one.data) + 1) for _ in range(one.chance.randrange(1, 4))]


def _damaged(data: bytes, chance: random.Random) -> bytes:
    """Damage the bytes as disks, programs and attackers do."""
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 2, 4, 16, 100, 1500))
    number = struct.pack(chance.choice("<>") + "I", chance.choice(NUMBERS))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at],
        lambda: data[at:],
        lambda: data[:at] + data[at + size :],
        lambda: data[:at] + chance.randbytes(size) + data[at:],
        lambda: data[:at] + chance.randbytes(size) + data[at + size :],
        lambda: data[:at] + bytes(size) + data[at:],
        lambda: data[:at] + number + data[at + 4 :],
        lambda: data[:at] + number * 2 + data[at + 8 :],
        lambda: data[:at] + data[at : at + size] * chance.randrange(2, 5) + data[at + size :],
        lambda: (
            data[:at] + chance.choice(corpus())[1][chance.randrange(99) :][: 9 * size] + data[at:]
        ),
        lambda: _flipped(data, at, chance),
    )
    return chance.choice(ways)()


def _flipped(data: bytes, at: int, chance: random.Random) -> bytes:
    if at == len(data):
        return data
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


@cache
def corpus() -> tuple[tuple[str, bytes], ...]:
    """Seed files, made from the same numbers each time: formats, byte orders, links, delivery methods."""
    chance = random.Random(7)
    return tuple(
        (name, data) for make in (_formats, _links, _streams) for name, data in make(chance)
    )


def _formats(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    made = _packets(chance)
    for order in "<>":
        for nano in (True, False):
            yield f"pcap {order} {nano}", pcap(made, order, nano)
        yield f"pcapng {order}", _sections(made, order, chance)
    yield "pcap, raw IP", pcap([replace(one, data=one.data[14:]) for one in made], link_type=101)
    yield (
        "pcap, cooked",
        pcap([replace(one, data=bytes(2) + one.data) for one in made], link_type=113),
    )
    yield "gzip", gzip.compress(pcap(made), mtime=0)
    yield "zstd", pa.compress(pcap(made), "zstd", asbytes=True)
    yield "zstd, pcapng", pa.compress(_sections(made, "<", chance), "zstd", asbytes=True)


def _packets(chance: random.Random) -> list[Captured]:
    """Packets of several protocols; some carry bytes that look like records."""
    inner = records(Captured(chance.randbytes(30), START_NS + number) for number in range(40))
    six = b"\x86\xdd" + bytes.fromhex("6000000000100040") + bytes(32) + b"\x3a\0\1\4\0\0\0\0"
    tagged = b"\x81\x00\x00\x07\x88\xa8\x00\x08\x08\x00" + b"\x45" + bytes(27)
    made = []
    for number in range(60):
        kind = number % 6
        data = (TOWN.mac + BROKER.mac + six, TOWN.mac + BROKER.mac + tagged, arp(TOWN), inner, b"")
        if kind == 5:
            captures = Captures()
            Connection(captures, TOWN, BROKER, sent={"town": 0, "broker": 0}).send(
                TOWN, inner[: chance.randrange(1400)], START_NS
            )
            piece = captures.records["town"][0][1] if captures.records["town"] else b""
        else:
            piece = data[kind][: chance.randrange(1500)] if kind == 3 else data[kind]
        made.append(Captured(piece, START_NS + number * MS, len(piece) + chance.randrange(2)))
    return made


def _sections(made: list[Captured], order: str, chance: random.Random) -> bytes:
    sections = [Pcapng(order, [Interface(name="one")])]
    for number, one in enumerate(made):
        if number % 23 == 22:
            sections.append(Pcapng(chance.choice("<>"), [Interface(101, 6), Interface(1, 0x94)]))
        section = sections[-1]
        if number % 17 == 16:
            section.describe(Interface(113, 3, name=f"late {number}", offset_s=-5, snaplen=60))
            section.block(chance.choice((4, 5, 0xBAD, 77)), chance.randbytes(20))
        which = chance.randrange(len(section.interfaces))
        if number % 5:
            section.add(replace(one, interface=which, comment="seen"), old=number % 7 == 0)
        else:
            section.add_simple(one)
    return b"".join(section.bytes() for section in sections)


def _links(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    run = StarRun(
        sensors=1,
        subscribers=1,
        publications=[
            Publication(0, 10 * n, 1 + n % 5, size=chance.choice((0, 40, 900, 4000)))
            for n in range(30)
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        made = run.write(Path(folder) / "run")
    for name in ("broker", "town-1"):
        yield f"link of {name}", made.captures.pcap(name)
    yield "link, cut packets", made.captures.pcap("town-1", snaplen=90)
    for style in STYLES:
        captures = Captures()
        connection = Connection(captures, TOWN, BROKER)
        connection.open(START_NS)
        connection.send(BROKER, _written(chance, style), START_NS + 900 * MS)
        yield f"link with {style}", captures.pcap("town")


def _streams(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    for style in STYLES:
        yield f"stream of {style}", _written(chance, style)
    whole = wire.encode(join([_message(chance, n) for n in range(4)], 9))
    yield "stream with joined", b"HTTP/1.1 101 x\r\n\r\n" + 3 * frame(whole, b"mask")


def _written(chance: random.Random, style: str) -> bytes:
    messages = [_message(chance, number) for number in range(25)]
    writer, _ = write_mixed(chance, messages, style, 100, chance.choice((b"", b"mask")))
    return writer.data


def _message(chance: random.Random, number: int) -> wire.Message:
    return wire.Message(
        wire.Kind.PUBLISH,
        priority=1 + number % 5,
        origin=1,
        message_id=wire.message_id(1, number + 1),
        published_ns=START_NS,
        topic="landslide/alert",
        payload=chance.randbytes(chance.choice((0, 20, 300, 1200))),
    )
