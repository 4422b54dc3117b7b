"""How much a queue may hold, and what is said when it holds no more."""

from collections.abc import Mapping
from typing import Any

from nodes.parameters import ParameterError
from nodes.wire import MAX_MESSAGE_BYTES

LIMIT_BYTES = MAX_MESSAGE_BYTES  # the largest message fits, if nothing else waits


def limit_bytes(method: str, parameters: Mapping[str, Any]) -> int:
    """The parameter of that name, for publications; ParameterError if it is no number of bytes."""
    limit = parameters.get("limit_bytes", LIMIT_BYTES)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ParameterError(
            "limit_bytes",
            f"{method}'s limit_bytes is {limit!r}; it takes a whole number, 1 or more",
        )
    return limit


def no_room(size: int, taken: int, limit: int) -> str:
    """Why a message was not taken."""
    return f"{size} bytes do not fit: {taken} of {limit} are taken"
