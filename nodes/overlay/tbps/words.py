"""What the nodes of a topic say to each other about it: one byte, then the topic.

With QUESTION, words of the layer above follow: a byte of length stands before the topic, and they stand behind it.
"""

from enum import IntEnum

from nodes.wire import WireError, encode_topic


class Word(IntEnum):
    """One byte."""

    STOP = 1  # nobody subscribes: send nothing
    GO = 2  # somebody does
    ASK = 3  # to a neighbour: are you stopped?
    STOPPED = 4  # I am
    GOING = 5  # I am not
    LOOK = 6  # to the rendezvous point: the publishers do not agree, look and tell us all
    QUESTION = 7  # to all who publish: words of the layer above


def say(word: Word, topic: str) -> bytes:
    """To bytes."""
    return bytes([word]) + topic.encode()


def hear(data: bytes) -> tuple[Word, str]:
    """From bytes; WireError if they are none."""
    try:
        return Word(data[0]), data[1:].decode()
    except (IndexError, ValueError):
        raise WireError(f"{data[:20]!r} is no word about a topic") from None


def say_question(topic: str, words: bytes) -> bytes:
    """To bytes."""
    return bytes([Word.QUESTION]) + write_question(topic, words)


def is_question(data: bytes) -> bool:
    return data[:1] == bytes([Word.QUESTION])


def hear_question(data: bytes) -> tuple[str, bytes]:
    """From bytes; WireError if they are none."""
    return read_question(data[1:])


def write_question(topic: str, words: bytes) -> bytes:
    """Topic and words, without the byte in front."""
    name = encode_topic(topic)
    return bytes([len(name)]) + name + words


def read_question(data: bytes) -> tuple[str, bytes]:
    """The same back; WireError for anything else."""
    if not data or len(data) < 1 + data[0]:
        raise WireError(f"{data[:20]!r} is no question about a topic")
    end = 1 + data[0]
    try:
        return data[1:end].decode(), data[end:]
    except UnicodeDecodeError:
        raise WireError("topic is not UTF-8") from None
