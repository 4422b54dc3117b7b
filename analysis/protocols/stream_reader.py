"""Detects the protocol of a stream and reads it: our messages in WebSocket frames, or MQTT, plain or in frames.

A long stream is read in parts: each reader returns how many bytes it has processed, and continues after them.
"""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from analysis.protocols.chunks import cut_of
from analysis.protocols.http_upgrade import HANDSHAKES, Upgrade
from analysis.protocols.messages import LinkPlace, Sightings, read_messages
from analysis.protocols.mqtt import (
    MQTT,
    Content,
    MqttReader,
    Packet,
    in_frames,
    likely_version,
    opening_version,
    plain,
    rows_of,
)
from analysis.protocols.resync import begins_frame
from analysis.protocols.websocket import FrameScan, after_handshake, continue_scan
from analysis.streams.stream import Stream

PROBE_BYTES = (
    1 << 20
)  # bytes that are enough to detect the protocol of a stream without its beginning


class Sink:
    """Collects the messages and MQTT packets of a link's streams."""

    def __init__(self, place: LinkPlace) -> None:
        self.place = place
        self.seen = Sightings(place)
        self.mqtt: list[pa.StructArray] = []

    def take(self) -> tuple[pa.StructArray, pa.StructArray]:
        """Return and release our messages and MQTT packets."""
        messages = self.seen.struct_array()
        packets = pa.concat_arrays(self.mqtt) if self.mqtt else pa.array([], MQTT)
        self.seen, self.mqtt = Sightings(self.place), []
        return messages, packets


class StreamSink:
    """The output of one stream: its source, its target, and the totals of its direction."""

    def __init__(
        self, sink: Sink, direction: str, source: int, target: int, total: dict[str, int]
    ) -> None:
        self.sink, self.direction, self.source, self.target = sink, direction, source, target
        self.total = total

    def frames(self, stream: Stream, found: FrameScan) -> None:
        """Add our messages and the cost of frames; readable bytes move from `unread` to their own layer."""
        messages = read_messages(stream, found)
        self.sink.seen.add(messages, self.direction, self.source, self.target)
        publish = messages.is_publish
        self._move("websocket_bytes", wrapping(stream, found) + int(messages.frame_bytes.sum()))
        self._move("label_bytes", int(messages.label_bytes.sum()))
        self._move("header_bytes", int(messages.header_bytes[publish].sum()))
        self._move("payload_bytes", int(messages.payload_seen[publish].sum()))
        other = messages.header_bytes[~publish].sum() + messages.payload_seen[~publish].sum()
        self._move("control_bytes", int(other))
        self.total["publish_messages"] += int(publish.sum())
        self.total["control_messages"] += int((~publish).sum())
        self.total["compressed_messages"] += messages.compressed
        self.total["orphan_pieces"] += messages.orphan_pieces

    def mqtt(self, content: Content, packets: list[Packet], version: int | None) -> None:
        """Add MQTT packets; their payload counts as payload, everything else as `mqtt`."""
        name_of = self.sink.place.name_of
        about: dict[str, Any] = {
            "link": self.sink.place.name,
            "direction": self.direction,
            "src": name_of(self.source),
            "dst": name_of(self.target),
            "version": version,
        }
        rows, cost = rows_of(content, packets, about)
        self.sink.mqtt.append(rows)
        self._move("mqtt_bytes", cost.mqtt_bytes)
        self._move("payload_bytes", cost.payload_bytes)
        self.total["mqtt_messages"] += cost.mqtt_messages
        self.total["mqtt_control"] += cost.mqtt_control

    def frame_heads(self, stream: Stream, found: FrameScan) -> None:
        """Add the cost of frames whose content is not ours."""
        heads = np.array(found.frames, np.int64).reshape(-1, 3)
        seen = int(stream.covered(heads[:, 0], heads[:, 1]).sum())
        self._move("websocket_bytes", wrapping(stream, found) + seen)

    def refused(self) -> None:
        """Count a stream that cannot be read because it is compressed."""
        self.total["compressed_streams"] += 1

    def _move(self, layer: str, size: int) -> None:
        self.total[layer] += size
        self.total["unread_bytes"] -= size


def wrapping(stream: Stream, found: FrameScan) -> int:
    """Seen bytes of the handshake and of control frames."""
    ranges = np.array([(0, found.handshake), *found.control_frames], np.int64)
    ends = np.minimum(ranges[:, 1], len(stream.data))
    return int(stream.covered(ranges[:, 0], ends).sum())


class Reader(Protocol):
    """Reads one stream."""

    def read(self, stream: Stream, final: bool) -> int:
        """Read from where it stopped; returns the number of bytes that are processed."""
        ...


def reader_for(stream: Stream, upgrade: Upgrade, output: StreamSink) -> Reader:
    """Choose the reader by the first bytes; `upgrade`: what both ends agreed on, if it is HTTP."""
    from_start = stream.from_start and not (stream.unknown and stream.unknown[0][0] == 0)
    if stream.data.startswith(HANDSHAKES):
        return _after_upgrade(stream, upgrade, output)
    if from_start:
        version = opening_version(stream.data)
        if version is not None:
            return Mqtt(output, version, version)
        return Frames(output) if begins_frame(stream.data, 0) else Unread()
    probe = stream.up_to(min(PROBE_BYTES, len(stream.data)))
    found = FrameScan()
    continue_scan(probe.data, probe.unknown, found, 0, lost=True)
    if not len(read_messages(probe, found).topics):
        version = likely_version(probe)
        if version is not None:
            return Mqtt(output, version, None, lost=True)
    return Frames(output)


def _after_upgrade(stream: Stream, upgrade: Upgrade, output: StreamSink) -> Reader:
    if upgrade.is_compressed:
        output.refused()
        return Unread()
    if not upgrade.is_websocket or after_handshake(stream.data) is None:
        return Unread()
    return MqttInFrames(output) if upgrade.is_mqtt else Frames(output)


class Unread:
    """Skips a stream of an unknown protocol."""

    def read(self, stream: Stream, final: bool) -> int:
        """All bytes are processed."""
        return len(stream.data)


class Frames:
    """Reads our messages."""

    def __init__(self, output: StreamSink) -> None:
        self._output = output
        self._fresh = True
        self._lost = False
        self._clean: frozenset[int] | None = None

    def read(self, stream: Stream, final: bool) -> int:
        """Incomplete messages stay, if the stream continues."""
        found = FrameScan(clean=self._clean)
        lost, at = self._lost, 0
        if self._fresh:
            at = found.handshake = after_handshake(stream.data) or 0
            lost = (at == 0 and not stream.from_start) or self._first_missing(stream)
        continue_scan(stream.data, stream.unknown, found, at, lost=lost, final=final)
        if final:
            self._output.frames(stream, found)
            return len(stream.data)
        cut = cut_of(stream, found)
        if cut.place:
            self._output.frames(stream.up_to(cut.place), found.up_to(cut.place))
            self._fresh, self._clean = False, cut.clean
            self._lost = found.lost and cut.place == found.stopped
        return cut.place

    def _first_missing(self, stream: Stream) -> bool:
        return bool(stream.unknown) and stream.unknown[0][0] == 0


class Mqtt:
    """Reads plain MQTT; `version` in the rows is None where the stream's beginning was not captured."""

    def __init__(
        self, output: StreamSink, version: int, known: int | None, *, lost: bool = False
    ) -> None:
        self._output = output
        self._reader = MqttReader(version)
        self._version = known
        self._lost = lost

    def read(self, stream: Stream, final: bool) -> int:
        """Incomplete packets stay, if the stream continues."""
        content = plain(stream)
        found = self._reader.read(content, lost=self._lost, final=final)
        if found.packets:
            self._output.mqtt(content, found.packets, self._version)
        self._lost = found.lost
        return len(stream.data) if final else found.stopped


class MqttInFrames:
    """Reads MQTT in WebSocket frames, up to the first missing byte."""

    def __init__(self, output: StreamSink) -> None:
        self._output = output
        self._reader: MqttReader | None = None
        self._skipped = 0  # bytes of the first frame that have been read
        self._fresh = True
        self._ended = False

    def read(self, stream: Stream, final: bool) -> int:
        """Frames with incomplete packets stay, if the stream continues."""
        if self._ended:
            return len(stream.data)
        found = FrameScan()
        found.handshake = (after_handshake(stream.data) or 0) if self._fresh else 0
        continue_scan(stream.data, stream.unknown, found, found.handshake, final=final)
        reached = len(stream.data) if final else found.stopped
        trouble = [*found.breaks, *(begin for begin, _ in stream.unknown if begin < reached)]
        end = min([reached, *trouble])
        self._ended = final or bool(trouble) or found.lost
        content = in_frames(stream, found, end)
        if self._fresh:
            version = opening_version(content.data)
            self._reader = MqttReader(version) if version else None
            self._fresh = False
        place = self._packets(content, found, end)
        self._output.frame_heads(stream, found.up_to(place))
        return len(stream.data) if self._ended else place

    def _packets(self, content: Content, found: FrameScan, end: int) -> int:
        """Read the packets; returns where the frames begin that are still needed."""
        if self._reader is None:
            return end
        read = self._reader.read(content, self._skipped, final=self._ended)
        if read.packets:
            self._output.mqtt(content, read.packets, self._reader.version)
        self._skipped = 0
        if self._ended or read.stopped >= len(content.data):
            return end
        run = int(np.searchsorted(content.runs, read.stopped, "right")) - 1
        self._skipped = read.stopped - int(content.runs[run])
        return found.frames[run][0]
