"""Several publications as one message of kind JOINED: its payload has them whole, each behind its length in 2 bytes.

    +---------------------------+----------+-----------------+----------+-----------------+
    | header, topic             | length 1 | publication 1   | length 2 | publication 2   | ...
    +---------------------------+----------+-----------------+----------+-----------------+

All have one topic, which is the topic of the JOINED; its priority is the highest of theirs, so that joining delays no
publication. It has at least two parts, none with custody (those are acknowledged one by one), and no JOINED inside: a
message from a hostile peer costs no more than its own bytes.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from nodes.protocol.wire import CUSTODY, Kind, Message, WireError, decode, encode

LENGTH = struct.Struct("!H")
LONGEST_PART = 0xFFFF
LEAST_PARTS, MOST_PARTS = 2, 1024


class Part(NamedTuple):
    """Where a publication lies in the payload, its length not counted."""

    begin: int
    end: int


def join(publications: Sequence[Message], sender: int) -> Message:
    """These publications of one topic as one message; WireError if they cannot be joined."""
    _check_number(len(publications))
    topic = publications[0].topic
    written = []
    for publication in publications:
        _check(publication, topic)
        data = encode(publication)
        if len(data) > LONGEST_PART:
            raise WireError(f"a publication of {len(data)} bytes to join; at most {LONGEST_PART}")
        written.append(LENGTH.pack(len(data)) + data)
    priority = max(publication.priority for publication in publications)
    return Message(Kind.JOINED, priority, origin=sender, topic=topic, payload=b"".join(written))


def split(joined: Message) -> list[Message]:
    """The publications in a JOINED; WireError if it is not what `join` makes."""
    found = []
    for begin, end in parts(joined.payload):
        publication = decode(joined.payload[begin:end])
        _check(publication, joined.topic)
        found.append(publication)
    return found


def parts(payload: bytes) -> list[Part]:
    """Where the publications lie, by the lengths alone; WireError if these do not add up."""
    found = list(islice(_walk(payload), MOST_PARTS + 1))
    _check_number(len(found))
    return found


def shares(size: int, count: int) -> list[int]:
    """The share of each of so many parts of the bytes that they have in common, as even as possible."""
    each, left = divmod(size, count)
    return [each + (place < left) for place in range(count)]


def _walk(payload: bytes) -> Iterator[Part]:
    at = 0
    while at < len(payload):
        begin = at + LENGTH.size
        if begin > len(payload):
            raise WireError("a length is cut at the end of a JOINED")
        at = begin + LENGTH.unpack_from(payload, at)[0]
        if at > len(payload):
            raise WireError(f"a part of {at - begin} bytes at the end of a JOINED is cut")
        yield Part(begin, at)


def _check_number(count: int) -> None:
    if not LEAST_PARTS <= count <= MOST_PARTS:
        number = count if count <= MOST_PARTS else f"more than {MOST_PARTS}"
        raise WireError(f"{number} parts in a JOINED; it has {LEAST_PARTS} to {MOST_PARTS}")


def _check(publication: Message, topic: str) -> None:
    if publication.kind is not Kind.PUBLISH:
        raise WireError(f"{publication.kind.name} in a JOINED; only publications are joined")
    if publication.flags & CUSTODY:
        raise WireError("a publication with custody in a JOINED; it travels alone")
    if publication.topic != topic:
        raise WireError(f"topic {publication.topic!r} in a JOINED of topic {topic!r}")
