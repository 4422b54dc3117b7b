"""HELLO: the first message on each link, both ways. Who is there, and is it of this lab?"""

import json
from typing import Any

from nodes.wire import Kind, Message, WireError, decode, encode

MAX_NAME = 128


class Unwelcome(Exception):
    """The other side is not who may be here; the text says why."""


def hello(name: str, number: int, lab: str) -> bytes:
    """This node's own HELLO."""
    payload = json.dumps({"name": name, "lab": lab}).encode()
    return encode(Message(Kind.HELLO, origin=number, payload=payload))


def check(data: bytes | str, lab: str, expected: str | None = None) -> str:
    """The name in the other side's HELLO; Unwelcome if it is none, or of another lab, or not from `expected`."""
    if isinstance(data, str):
        raise Unwelcome("a text message instead of HELLO")
    try:
        message = decode(data)
    except WireError as error:
        raise Unwelcome(f"not a HELLO: {error}") from error
    if message.kind is not Kind.HELLO:
        raise Unwelcome(f"{message.kind.name} before HELLO")
    try:
        said: Any = json.loads(message.payload)
        name, other_lab = said["name"], said["lab"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Unwelcome("HELLO without name and lab") from error
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise Unwelcome("HELLO with a name that cannot be one")
    if other_lab != lab:
        raise Unwelcome(f"{name} is of the lab {str(other_lab)[:MAX_NAME]!r}; this is {lab!r}")
    if expected is not None and name != expected:
        raise Unwelcome(f"{name} answered where {expected} should be")
    return name
