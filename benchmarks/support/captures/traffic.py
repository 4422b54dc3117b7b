"""A capture of many small packets: TCP connections whose two sides take turns, like the nodes of a lab."""

import struct
from pathlib import Path

import numpy as np

CONNECTIONS = 200
SIZES, SHARES = (
    (0, 40, 100, 300),
    (0.45, 0.25, 0.2, 0.1),
)  # bytes of payload, and how many have them
SERVER = 0x0A4D0001
CHUNK = 100_000  # packets that are written at a time
LAYOUT = np.dtype(
    [
        ("seconds", "<u4"),
        ("nanoseconds", "<u4"),
        ("caplen", "<u4"),
        ("wirelen", "<u4"),
        ("eth_dst", "V6"),
        ("eth_src", "V6"),
        ("eth_type", ">u2"),
        ("version", "u1"),
        ("tos", "u1"),
        ("ip_len", ">u2"),
        ("ip_id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("proto", "u1"),
        ("ip_checksum", ">u2"),
        ("ip_src", ">u4"),
        ("ip_dst", ">u4"),
        ("src_port", ">u2"),
        ("dst_port", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
    ]
)
RECORD_HEADER = 16


def write_traffic(path: Path, packets: int, seed: int = 1) -> None:
    """Write this many packets, the same for the same seed."""
    chance = np.random.default_rng(seed)
    sent = np.ones((CONNECTIONS, 2), np.int64)  # by client and server
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
        for first in range(0, packets, CHUNK):
            count = min(CHUNK, packets - first)
            heads, sizes = _heads(first, count, sent, chance)
            file.write(_interleaved(heads, sizes, chance))


def _heads(
    first: int,
    count: int,
    sent: "np.ndarray[tuple[int, int], np.dtype[np.int64]]",
    chance: np.random.Generator,
) -> tuple[
    "np.ndarray[tuple[int], np.dtype[np.void]]", "np.ndarray[tuple[int], np.dtype[np.int64]]"
]:
    number = np.arange(first, first + count)
    flow, side = number // 2 % CONNECTIONS, number % 2
    sizes = chance.choice(SIZES, count, p=SHARES).astype(np.int64)
    heads = np.zeros(count, LAYOUT)
    seq, ack = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for one in range(CONNECTIONS):
        mine = np.flatnonzero(flow == one)
        for end in (0, 1):
            its = sizes[mine] * (side[mine] == end)
            before = sent[one, end] + np.cumsum(its) - its
            seq[mine] += before * (side[mine] == end)
            ack[mine] += before * (side[mine] != end)
            sent[one, end] += its.sum()
    client = SERVER + 1 + flow
    heads["seconds"], heads["nanoseconds"] = (
        1_700_000_000 + number // 10_000,
        number % 10_000 * 100_000,
    )
    heads["caplen"] = heads["wirelen"] = sizes + LAYOUT.itemsize - RECORD_HEADER
    heads["eth_dst"], heads["eth_src"] = b"\x02tb\0\0\1", b"\x02tb\0\0\2"
    heads["eth_type"], heads["version"], heads["ttl"], heads["proto"] = 0x0800, 0x45, 64, 6
    heads["ip_len"] = sizes + 40
    heads["ip_src"] = np.where(side == 0, client, SERVER)
    heads["ip_dst"] = np.where(side == 0, SERVER, client)
    heads["src_port"] = np.where(side == 0, 40_000, 8765)
    heads["dst_port"] = np.where(side == 0, 8765, 40_000)
    heads["seq"], heads["ack"] = seq % 2**32, ack % 2**32
    heads["offset"], heads["flags"], heads["window"] = 0x50, 0x18, 65_535
    return heads, sizes


def _interleaved(
    heads: "np.ndarray[tuple[int], np.dtype[np.void]]",
    sizes: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    chance: np.random.Generator,
) -> bytes:
    """Each header followed by its payload."""
    width = LAYOUT.itemsize
    starts = np.cumsum(sizes + width) - sizes - width
    out = np.frombuffer(chance.bytes(int(sizes.sum()) + width * len(heads)), np.uint8).copy()
    places = np.lib.stride_tricks.sliding_window_view(out, width, writeable=True)
    places[starts] = heads.view(np.uint8).reshape(-1, width)
    return out.tobytes()
