"""The parameters of a chosen method, as they come from the topology file."""

from collections.abc import Mapping
from typing import Any


class ParameterError(ValueError):
    """A parameter that the method does not take, or not with this value; `name` says which, the text why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def check_known(method: str, parameters: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """ParameterError with a sentence if one of the parameters is none of the `known`."""
    for name in parameters:
        if name not in known:
            takes = ", ".join(known) if known else "none"
            raise ParameterError(name, f"{method} has no parameter {name!r}; it takes {takes}")
