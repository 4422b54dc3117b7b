"""The MQTT packets of a stream, plain or inside WebSocket frames, and when each was seen.

Who begins in the middle, or behind bytes that the capture lost, begins again where a TCP segment does: senders nearly
always begin a packet there. It is believed if the packets from there on end where a segment ends, or are several.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.decode import unmask
from analysis.mqtt import (
    LONGEST_HEAD,
    NEWEST,
    V311,
    Head,
    Kind,
    Publication,
    begins_with_connack,
    begins_with_connect,
    read_head,
    read_publication,
)
from analysis.stream import Stream
from analysis.websocket import MASK_BIT, Walk

Array = npt.NDArray[Any]

ENOUGH = 3  # packets in a row
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes that somebody wrote, and where in the stream they are: runs that lie one behind the other."""

    stream: Stream
    data: bytes
    runs: Array  # where each begins in `data`,
    places: Array  # and where in the stream
    unknown: tuple[tuple[int, int], ...] = ()
    plain: bool = True

    def place(self, at: Array) -> Array:
        """Where in the stream these bytes are."""
        run = np.searchsorted(self.runs, at, "right") - 1
        where: Array = self.places[run] + at - self.runs[run]
        return where

    def seen(self, begin: Array, end: Array) -> Array:
        """How many bytes of each range were captured; what is inside of frames is here only if it was."""
        inside = np.minimum(end, len(self.data))
        if self.plain:
            return self.stream.covered(begin, np.maximum(begin, inside))
        there: Array = np.maximum(inside - begin, 0)
        return there

    def known(self, begin: Array, end: Array) -> Array:
        """Whether all content of each range was kept: the capture may have cut packets."""
        if not self.unknown:
            return np.ones(len(begin), bool)
        begins, ends = (np.array(side, np.int64) for side in zip(*self.unknown, strict=True))
        before = np.searchsorted(begins, end - 1, "right") - 1
        return (end <= begin) | (before < 0) | (ends[before] <= begin)


def plain(stream: Stream) -> Content:
    """The stream itself."""
    zero = np.zeros(1, np.int64)
    return Content(stream, stream.data, zero, zero, stream.unknown)


def in_frames(stream: Stream, found: Walk, end: int) -> Content:
    """What the frames of a WebSocket carry, up to this place."""
    parts: list[bytes] = []
    places: list[int] = []
    for at, payload_at, frame_end in found.frames:
        if payload_at >= end:
            break
        payload = stream.data[payload_at : min(frame_end, end)]
        masked = stream.data[at + 1] & MASK_BIT
        mask = stream.data[payload_at - 4 : payload_at]
        parts.append(unmask(payload, mask) if masked else payload)
        places.append(payload_at)
        if frame_end > end:
            break
    runs = np.cumsum([0, *map(len, parts)])[: max(1, len(parts))]
    return Content(stream, b"".join(parts), runs, np.array(places or [0], np.int64), plain=False)


class Packet(NamedTuple):
    """A control packet; of all but a PUBLISH, `payload_at` is its end."""

    head: Head
    payload_at: int
    publication: Publication | None = None
    topic: str | None = None


@dataclass(slots=True)
class Found:
    """What was read of a stream: up to `stopped`, where no packet needs to begin if it is `lost`."""

    packets: list[Packet] = field(default_factory=list)
    stopped: int = 0
    lost: bool = False


def opening_version(data: bytes) -> int | None:
    """Which version of MQTT begins so; None: it is something else."""
    return begins_with_connect(data) or begins_with_connack(data)


def likely_version(stream: Stream) -> int | None:
    """As which version of MQTT a stream can be read whose beginning is missing; None: as none."""
    found = {
        version: _published(MqttReader(version).read(plain(stream), lost=True).packets)
        for version in (NEWEST, V311)
    }
    best = NEWEST if found[NEWEST] >= found[V311] else V311
    return best if found[best] else None


def _published(packets: list[Packet]) -> int:
    """How many bytes of publications these explain."""
    return sum(
        packet.head.end - packet.head.at for packet in packets if packet.publication is not None
    )


class MqttReader:
    """Reads one stream, if need be in parts. In version 5 a topic may have a number that stands for it later."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.topics: dict[int, str] = {}

    def read(
        self, content: Content, at: int = 0, *, lost: bool = False, final: bool = True
    ) -> Found:
        """All packets from here on; if the content is not final, only what no later byte changes."""
        return _Pass(self, content, final).run(at, lost)

    def named(self, packet: Packet) -> Packet:
        """With its topic, if that can be known."""
        published = packet.publication
        if published is None:
            return packet
        if published.alias and published.topic:
            self.topics[published.alias] = published.topic
        return packet._replace(topic=published.topic or self.topics.get(published.alias or 0))


class _Unsure(Exception):
    """It depends on bytes that are not there yet."""


class _Pass:
    """Goes from packet to packet."""

    def __init__(self, reader: MqttReader, content: Content, final: bool) -> None:
        self.reader, self.content, self.final = reader, content, final
        self.data = content.data
        self.unknown_begins = [begin for begin, _ in content.unknown]
        self.unknown_ends = [end for _, end in content.unknown]
        stream = content.stream
        self.segments: list[int] = stream.starts.tolist() if content.plain else []
        ends = set((stream.starts + stream.lengths).tolist()) if content.plain else set()
        self.segment_ends = ends if final else ends - {len(self.data)}

    def run(self, at: int, lost: bool) -> Found:
        found = Found()
        try:
            while at < len(self.data):
                if lost:
                    at, lost = self._next(at), False
                    continue
                packet = self._packet(at)
                if packet is None:
                    at, lost = at + 1, True
                    continue
                if packet.head.end > len(self.data) and not self.final:
                    break
                found.packets.append(self.reader.named(packet))
                at = packet.head.end
        except _Unsure as unsure:
            at = unsure.args[0]
        found.stopped, found.lost = at, lost
        return found

    def _packet(self, at: int) -> Packet | None:
        packet = self._known_packet(at)
        if packet is None and not self.final and at + LONGEST_HEAD > len(self.data):
            raise _Unsure(at)
        return packet

    def _known_packet(self, at: int) -> Packet | None:
        head = read_head(self.data, at, self.reader.version)
        if head is None:
            return None
        if head.kind is not Kind.PUBLISH:
            known = not self._is_unknown(at, min(head.end, len(self.data)))
            return Packet(head, head.end) if known else None
        published = read_publication(self.data, head, self.reader.version)
        if published is None or self._is_unknown(at, published.payload_at):
            return None
        return Packet(head, published.payload_at, published)

    def _next(self, at: int) -> int:
        """The next segment that begins with packets; the end of all if there is none."""
        for place in self.segments[bisect_left(self.segments, at) :]:
            try:
                if self._can_begin(place):
                    return place
            except _Unsure as unsure:
                raise _Unsure(place) from unsure
        return len(self.data)

    def _can_begin(self, at: int) -> bool:
        for _ in range(ENOUGH):
            packet = self._packet(at)
            if packet is None:
                return False
            at = packet.head.end
            if at in self.segment_ends:
                return True
        return True

    def _is_unknown(self, begin: int, end: int) -> bool:
        before = bisect_right(self.unknown_begins, end - 1) - 1
        return before >= 0 and self.unknown_ends[before] > begin


def digest(payload: bytes) -> str:
    """By which the same payload is found again on other links."""
    return blake2b(payload, digest_size=DIGEST_BYTES).hexdigest()
