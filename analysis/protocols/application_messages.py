"""Application messages in captures of any origin, each once: publisher, topic, priority, size and time.

Our messages have ids, which are the same on every link. MQTT numbers messages anew on each hop: there, the node that
sent a payload under a topic first is its publisher. Files are read one by one; nothing else is known of the network.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.captures.files import find_files
from analysis.captures.packets import Packets, read_windows
from analysis.protocols.link import LinkReader
from analysis.protocols.messages import LinkPlace

PORT_BITS = 16


class ApplicationMessage(NamedTuple):
    """One message. `priority` is None where its protocol has none, `qos` where it is not MQTT."""

    at_ns: int  # since 1970: the publisher's time if the message has one, else the time of its first byte
    origin: str  # a node's name, `#7` for an unknown number, or an address
    topic: str
    size: int
    priority: int | None = None
    qos: int | None = None


class Found(NamedTuple):
    """The messages in the order of time, and the number of incomplete ones."""

    messages: list[ApplicationMessage]
    files: int
    incomplete: int  # messages that no capture has completely


def application_messages(paths: Iterable[str], numbers: Mapping[int, str]) -> Found:
    """Read these files, folders and patterns; `numbers`: node by number. AnalysisError if there are no files."""
    ours: dict[str, ApplicationMessage] = {}
    cut: set[str] = set()
    mqtt: list[dict[str, Any]] = []
    files = find_files(paths)
    for path in files:
        for sightings, packets in _read(Path(path), numbers):
            for row in _publications(sightings):
                identity = row["id"]
                if not row["complete"]:
                    cut.add(identity)
                elif identity not in ours:
                    ours[identity] = ApplicationMessage(
                        row["published_ns"],
                        row["origin"],
                        row["topic"],
                        row["payload_bytes"],
                        priority=row["priority"],
                    )
            mqtt += ({**row, "file": path} for row in packets.to_pylist())
    from_mqtt, unread = mqtt_publications(mqtt)
    messages = sorted(
        [*ours.values(), *from_mqtt], key=lambda one: (one.at_ns, one.origin, one.topic)
    )
    return Found(messages, len(files), len(cut - ours.keys()) + unread)


def _publications(sightings: pa.StructArray) -> list[dict[str, Any]]:
    return [row for row in sightings.to_pylist() if row["kind"] == "PUBLISH"]


def _read(
    path: Path, numbers: Mapping[int, str]
) -> Iterator[tuple[pa.StructArray, pa.StructArray]]:
    """Sightings and MQTT packets, window by window."""
    ends = _Ends()
    reader = LinkReader(LinkPlace(path.stem, -1, -1, ends.names, numbers))
    for packets in read_windows(path):
        reader.add(ends.with_ports(packets))
        reader.end_window()
        yield reader.read_so_far()
    last = reader.finish()
    yield last.sightings, last.mqtt


class _Ends:
    """Numbers for addresses with ports, because a broker and its clients may share one address."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # number -> address:port
        self._numbers: dict[int, int] = {}

    def with_ports(self, packets: Packets) -> Packets:
        """The packets with these numbers as addresses."""
        return replace(
            packets,
            ip_src=self._numbered(packets.ip_src, packets.src_port),
            ip_dst=self._numbered(packets.ip_dst, packets.dst_port),
        )

    def _numbered(self, addresses: Any, ports: Any) -> Any:
        both = addresses.astype(np.int64) << PORT_BITS | ports.astype(np.int64)
        known, places = np.unique(both, return_inverse=True)
        return np.array([self._number(end) for end in known.tolist()], np.int64)[places]

    def _number(self, end: int) -> int:
        if end not in self._numbers:
            number = self._numbers[end] = len(self._numbers) + 1
            address, port = end >> PORT_BITS, end & (1 << PORT_BITS) - 1
            quads = ".".join(str(address >> shift & 0xFF) for shift in (24, 16, 8, 0))
            self.names[number] = f"{quads}:{port}"
        return self._numbers[end]


def mqtt_publications(rows: Iterable[Mapping[str, Any]]) -> tuple[list[ApplicationMessage], int]:
    """Publications from MQTT packets (`analysis.protocols.mqtt`, with their `file`), and the number of unreadable ones.

    A packet may be in several files: the connection with the most sightings of the publisher counts.
    """
    published: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    servers: set[str] = set()
    unread = 0
    for row in rows:
        if row["kind"] == "CONNECT":
            servers.add(row["dst"])
        elif row["kind"] == "PUBLISH" and not row["dup"]:
            if row["complete"] and row["digest"] and row["topic"]:
                published[row["topic"], row["digest"]].append(row)
            else:
                unread += 1
    hosts = {_address(server) for server in servers}
    found = []
    for alike in published.values():
        first = min(alike, key=lambda row: row["first_ns"])
        name, sent = _publisher(first, alike, servers, hosts)
        ways: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
        for row in sent:
            ways[row["file"], row["dst"]].append(row)
        best = max(ways.values(), key=lambda way: (len(way), -way[0]["first_ns"]))
        found += [
            ApplicationMessage(
                row["first_ns"], name, row["topic"], row["payload_bytes"], qos=row["qos"]
            )
            for row in best
        ]
    return found, unread


def _publisher(
    first: Mapping[str, Any],
    alike: Iterable[Mapping[str, Any]],
    servers: set[str],
    hosts: set[str],
) -> tuple[str, list[Mapping[str, Any]]]:
    """The publisher, and which rows are that client's; it may have reconnected from another port.

    A broker and its clients may share an address: then names have ports, and packets to a broker are a client's.
    """
    address = _address(first["src"])
    own = [row for row in alike if _address(row["src"]) == address]
    if address not in hosts:
        return address, own
    if first["dst"] in servers:
        return first["src"], [row for row in own if row["dst"] in servers]
    return first["src"], [row for row in own if row["src"] == first["src"]]


def _address(end: str) -> str:
    return end.partition(":")[0]
