"""Streams of labelled chunks made up byte by byte, with the truth known; no scheduler is involved."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from analysis.streams.reassembly import Stream, reassemble
from nodes.protocol import wire
from nodes.protocol.labels import BITS, LENGTH_BYTES, LEVELLED, DmpqLabel, Form, levelled
from support.runs.star_runs import frame

STYLES = ("plain", "letters", "bits", "levels")


@dataclass
class Truth:
    """A message, and the bytes of the stream that carry it alone or carry it first."""

    message: wire.Message
    ranges: list[tuple[int, int]] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)  # positions of the frames that contain it
    frame_bytes: int = 0
    label_bytes: int = 0


class Writer:
    """Write chunks as frames, one after the other."""

    def __init__(self, mask: bytes = b"") -> None:
        self.data = b""
        self.mask = mask

    def chunk(self, parts: Sequence[tuple[Truth, bytes]], label: int | None, bits: int = 0) -> None:
        """Write one chunk; if it has several parts, each follows its length."""
        payload, prefix = b"", b"" if label is None else bytes([label])
        sizes = []
        for _, content in parts:
            if label is not None and label & LEVELLED and label >> 3 & 0b11 == Form.SEVERAL:
                prefix += len(content).to_bytes(LENGTH_BYTES)
            payload += prefix + content
            sizes.append((len(prefix), len(content)))
            prefix = b""
        written = frame(payload, self.mask, 0x82 | bits << 4)
        head = len(written) - len(payload)
        at = len(self.data)
        for (truth, _), (labels, size) in zip(parts, sizes, strict=True):
            truth.ranges.append((at, at + head + labels + size))
            truth.frames.append(len(self.data))
            truth.frame_bytes += head
            truth.label_bytes += labels
            at, head = at + head + labels + size, 0
        self.data += written


def write_mixed(
    chance: random.Random, messages: Sequence[wire.Message], style: str, dv: int, mask: bytes
) -> tuple[Writer, list[Truth]]:
    """Write the messages in chunks of at most `dv` payload bytes; messages of different levels alternate at random."""
    writer = Writer(mask)
    truths = [Truth(message) for message in messages]
    waiting: dict[int, list[Truth]] = {}
    for truth in truths:
        waiting.setdefault(_way(truth.message, style), []).append(truth)
    sent: dict[int, int] = {}
    while ways := [way for way, queue in waiting.items() if queue]:
        way = chance.choice(ways)
        queue = waiting[way]
        data = wire.encode(queue[0].message)
        done = sent.get(way, 0)
        if style == "levels" and not done and len(data) <= dv and chance.random() < 0.4:
            together = [
                t for t in queue[: chance.randint(1, 4)] if len(wire.encode(t.message)) <= dv
            ]
            together = together if together == queue[: len(together)] else queue[:1]
            parts = [(truth, wire.encode(truth.message)) for truth in together]
            writer.chunk(parts, levelled(Form.SEVERAL, way))
            del queue[: len(together)]
            continue
        upto = len(data) if style == "plain" else min(done + dv, len(data))
        _one(writer, queue[0], data[done:upto], style, way, done == 0, upto == len(data))
        sent[way] = 0 if upto == len(data) else upto
        if upto == len(data):
            queue.pop(0)
    return writer, truths


def _way(message: wire.Message, style: str) -> int:
    if style == "levels":
        return message.priority
    return int(message.priority >= 4) if style != "plain" else 0


def _one(
    writer: Writer, truth: Truth, content: bytes, style: str, way: int, begins: bool, ends: bool
) -> None:
    if style == "plain":
        writer.chunk([(truth, content)], None)
        return
    if style == "levels":
        form = Form.WHOLE if begins and ends else Form.LAST if ends else Form.PIECE
        writer.chunk([(truth, content)], levelled(form, way))
        return
    if begins and ends:
        label = DmpqLabel.URGENT if way else DmpqLabel.WHOLE
    elif ends:
        label = DmpqLabel.URGENT_LAST if way else DmpqLabel.LAST
    else:
        label = DmpqLabel.URGENT_PIECE if way else DmpqLabel.PIECE
    if style == "bits":
        writer.chunk([(truth, content)], None, BITS[label])
    else:
        writer.chunk([(truth, content)], label)


def stream_in_segments(
    data: bytes, edges: Sequence[int], hole: tuple[int, int] = (0, 0), from_start: bool = True
) -> Stream:
    """Cut the stream at these places. The segment at n is seen at time n + 1; the hole's bytes are never seen."""
    low, high = hole
    cuts = sorted({0, len(data), low, high, *(edge % (len(data) + 1) for edge in edges)})
    pieces = [(a, b) for a, b in pairwise(cuts) if not (low <= a and b <= high and low < high)]
    starts = np.array([a for a, _ in pieces], np.int64)
    sizes = np.array([b - a for a, b in pieces], np.int64)
    opening = 0 if from_start else None
    return reassemble(data, starts, sizes, sizes, starts, starts + 1, opening)
