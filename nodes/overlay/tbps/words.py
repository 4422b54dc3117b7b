"""What the nodes of a topic say to each other about it: one byte, then the topic."""

from enum import IntEnum

from nodes.wire import WireError


class Word(IntEnum):
    """One byte."""

    STOP = 1  # nobody subscribes: send nothing
    GO = 2  # somebody does
    ASK = 3  # to a neighbour: are you stopped?
    STOPPED = 4  # I am
    GOING = 5  # I am not
    LOOK = 6  # to the rendezvous point: the publishers do not agree, look and tell us all


def say(word: Word, topic: str) -> bytes:
    """To bytes."""
    return bytes([word]) + topic.encode()


def hear(data: bytes) -> tuple[Word, str]:
    """From bytes; WireError if they are none."""
    try:
        return Word(data[0]), data[1:].decode()
    except (IndexError, ValueError):
        raise WireError(f"{data[:20]!r} is no word about a topic") from None
