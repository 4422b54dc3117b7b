"""How much a queue may hold, and what is said when it holds no more."""

from collections.abc import Mapping
from typing import Any

from nodes.parameters import whole_number
from nodes.wire import MAX_MESSAGE_BYTES

LIMIT_BYTES = MAX_MESSAGE_BYTES  # the largest message fits, if nothing else waits


def limit_bytes(method: str, parameters: Mapping[str, Any]) -> int:
    """The parameter of that name, for publications; ParameterError if it is no number of bytes."""
    return whole_number(method, parameters, "limit_bytes", LIMIT_BYTES, least=1)


def no_room(size: int, taken: int, limit: int) -> str:
    """Why a message was not taken."""
    return f"{size} bytes do not fit: {taken} of {limit} are taken"
