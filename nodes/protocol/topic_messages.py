"""Control messages between the nodes of a topic: one byte, then the topic.

QUESTION has the length of the topic in one byte before it, and a payload of the layer above behind it. WANTED and
UNWANTED have the sender's time before the topic: 8 bytes that only the sender reads.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum

from nodes.protocol.skipgraph_codec import read_contacts, write_contacts
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import WireError, encode_topic


class TopicControl(IntEnum):
    """The kinds of control messages, one byte each."""

    STOP = 1  # nobody subscribes: send nothing
    GO = 2  # somebody does
    ASK = 3  # to a neighbour: are you stopped?
    STOPPED = 4  # I am
    GOING = 5  # I am not
    LOOK = 6  # to the rendezvous point: the publishers do not agree; check, and notify all of them
    QUESTION = 7  # to all publishers: a payload of the layer above
    WANTED = 8  # to the rendezvous point: is there really no subscriber?
    UNWANTED = 9  # the reply: there was none at the time of the question, or later


def encode_control(control: TopicControl, topic: str) -> bytes:
    """To bytes."""
    return bytes([control]) + topic.encode()


def decode_control(data: bytes) -> tuple[TopicControl, str]:
    """From bytes; WireError if they are none."""
    try:
        return TopicControl(data[0]), data[1:].decode()
    except (IndexError, ValueError):
        raise WireError(f"{data[:20]!r} is no control message about a topic") from None


_MOMENT = struct.Struct("!d")


def encode_timed(control: TopicControl, moment: float, topic: str) -> bytes:
    """WANTED or UNWANTED to bytes."""
    return bytes([control]) + _MOMENT.pack(moment) + topic.encode()


def is_timed(data: bytes) -> bool:
    return data[:1] in (bytes([TopicControl.WANTED]), bytes([TopicControl.UNWANTED]))


def decode_timed(data: bytes) -> tuple[TopicControl, float, str]:
    """From bytes; WireError if they are none."""
    begin = 1 + _MOMENT.size
    if len(data) < begin:
        raise WireError(f"{data[:20]!r} has no time in it")
    control, topic = decode_control(data[:1] + data[begin:])
    return control, _MOMENT.unpack_from(data, 1)[0], topic


def encode_question(topic: str, payload: bytes) -> bytes:
    """To bytes."""
    return bytes([TopicControl.QUESTION]) + write_question(topic, payload)


def is_question(data: bytes) -> bool:
    return data[:1] == bytes([TopicControl.QUESTION])


def decode_question(data: bytes) -> tuple[str, bytes]:
    """From bytes; WireError if they are none."""
    return read_question(data[1:])


def write_question(topic: str, payload: bytes) -> bytes:
    """Topic and payload, without the byte in front."""
    name = encode_topic(topic)
    return bytes([len(name)]) + name + payload


def read_question(data: bytes) -> tuple[str, bytes]:
    """The same back; WireError for anything else."""
    if not data or len(data) < 1 + data[0]:
        raise WireError(f"{data[:20]!r} is no question about a topic")
    end = 1 + data[0]
    try:
        return data[1:end].decode(), data[end:]
    except UnicodeDecodeError:
        raise WireError("topic is not UTF-8") from None


# What nodes of a topic tell its publishers about who takes part: one byte for the kind, then contacts.


MOST_IN_ONE = 200  # contacts in a message


class RosterControl(IntEnum):
    """The kinds of control messages about participants, one byte each; distinct from `TopicControl`."""

    PRESENT = 101
    ABSENT = 102
    ROSTER = (
        103  # asks for the participants that the receiver knows; the one contact is the sender's
    )


def encode_contacts(control: RosterControl, contacts: Iterable[Contact]) -> list[bytes]:
    """To bytes, in as many messages as are needed."""
    every = tuple(contacts)
    return [
        bytes([control]) + write_contacts(every[at : at + MOST_IN_ONE])
        for at in range(0, len(every), MOST_IN_ONE)
    ]


def is_roster_control(data: bytes) -> bool:
    return data[:1] in [bytes([control]) for control in RosterControl]


def decode_contacts(data: bytes) -> tuple[RosterControl, tuple[Contact, ...]]:
    """From bytes; WireError if they are none."""
    if not is_roster_control(data):
        raise WireError(f"{data[:20]!r} is no control message about participants")
    return RosterControl(data[0]), read_contacts(data[1:])
