"""Reads our message header from captured bytes, for many messages at once. Layout: `nodes.protocol.wire.FIELDS`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from nodes.protocol.wire import (
    COORDINATE_BYTES,
    CUSTODY,
    FIELDS,
    HEADER_SIZE,
    HIGHEST_PRIORITY,
    LOWEST_PRIORITY,
    MAX_TOPIC_BYTES,
    PLACED,
    REPEATED,
    ROUTED,
    ROUTING_LENGTH,
    VERSION,
    Kind,
)

Array = npt.NDArray[Any]
LAYOUT = np.dtype([(field.name, f">u{field.size}") for field in FIELDS])
KINDS = frozenset(int(kind) for kind in Kind)
PLACE = {field.name: number for number, field in enumerate(FIELDS)}
FLAGS = ROUTED | CUSTODY | REPEATED | PLACED


def masks(data: bytes, at: Array, payload_at: Array) -> Array:
    """The mask of the frame at each position as a row of four bytes; zeros if it has none (RFC 6455, 5.2)."""
    rows = gather(data, payload_at - 4 + 4 * (payload_at < 4), np.zeros((len(at), 4), np.uint8), 4)
    masked = np.frombuffer(data, np.uint8)[at + 1] & 0x80 > 0
    return np.where(masked[:, None], rows, 0).astype(np.uint8)


def headers(data: bytes, at: Array, masks: Array) -> Array:
    """The fixed part of the header at each position; `masks` has a row of four bytes each, zero if unmasked."""
    return gather(data, at, masks, HEADER_SIZE).view(LAYOUT)[:, 0]


def gather(data: bytes, at: Array, masks: Array, width: int) -> Array:
    """`width` unmasked bytes from each position, as rows; zeros beyond the end of the data."""
    if (beyond := int(at.max(initial=0)) + width - len(data)) > 0:
        data += bytes(beyond)
    raw = np.frombuffer(data, np.uint8)
    rows = np.lib.stride_tricks.sliding_window_view(raw, width)[at]
    return np.ascontiguousarray(rows ^ np.tile(masks, (1, width // 4 + 1))[:, :width])


def usual_flags(header: Array) -> Array:
    """Which headers have known flags only."""
    usual: Array = header["flags"] & ~np.uint16(FLAGS) == 0
    return usual


def section_sizes(data: bytes, at: Array, masks: Array, header: Array, after: Array) -> Array:
    """Size of the place and routing sections, which begin `after` bytes into the message; 0 without them."""
    flags, sizes = header["flags"], np.zeros(len(header), np.int64)
    if (flags & PLACED).any():
        counts = gather(data, at + after, turned(masks, after), 1)[:, 0].astype(np.int64)
        sizes = np.where(flags & PLACED, 1 + COORDINATE_BYTES * counts, 0)
    if (flags & ROUTED).any():
        after = after + sizes
        lengths = gather(data, at + after, turned(masks, after), ROUTING_LENGTH.size)
        routing = ROUTING_LENGTH.size + lengths.view(">u2")[:, 0].astype(np.int64)
        sizes = sizes + np.where(flags & ROUTED, routing, 0)
    return sizes


def turned(masks: Array, after: Array) -> Array:
    """The masks rotated by this many bytes."""
    rows: Array = np.take_along_axis(masks, (after[:, None] + np.arange(4)) % 4, axis=1)
    return rows


def readable(header: Array, length: Array) -> Array:
    """Which headers are valid in a message of this length."""
    good: Array = (
        (header["version"] == VERSION)
        & np.isin(header["kind"], list(KINDS))
        & (header["priority"] >= LOWEST_PRIORITY)
        & (header["priority"] <= HIGHEST_PRIORITY)
        & (header["topic_length"] <= MAX_TOPIC_BYTES)
        & (HEADER_SIZE + header["topic_length"].astype(np.int64) <= length)
    )
    return good


def topics(data: bytes, at: Array, masks: Array, lengths: Array) -> list[str]:
    """The topic of each message; `at`: where its bytes begin; `masks`: rotated to that position."""
    width = int(lengths.max(initial=0))
    if not width:
        return [""] * len(at)
    rows = gather(data, at, masks, width)
    rows[np.arange(width) >= lengths[:, None]] = 0
    names = rows.view(f"S{width}")[:, 0]  # a topic does not end in zero bytes
    distinct, which = np.unique(names, return_inverse=True)
    texts = [name.decode(errors="replace") for name in distinct.tolist()]
    return [texts[number] for number in which.tolist()]


def possible_header(fields: tuple[int, ...], length: int) -> bool:
    """Whether these values are a valid header in a message of this length; stricter than `readable`."""
    topic_length = fields[PLACE["topic_length"]]
    return (
        fields[PLACE["version"]] == VERSION
        and fields[PLACE["kind"]] in KINDS
        and LOWEST_PRIORITY <= fields[PLACE["priority"]] <= HIGHEST_PRIORITY
        and fields[PLACE["flags"]] & ~FLAGS == 0
        and topic_length <= MAX_TOPIC_BYTES
        and HEADER_SIZE + topic_length <= length
    )


def unmask(payload: bytes, mask: bytes) -> bytes:
    """Unmask a payload (RFC 6455, 5.3)."""
    size = len(payload)
    key = int.from_bytes((mask * (size // 4 + 1))[:size])
    return (int.from_bytes(payload) ^ key).to_bytes(size)
