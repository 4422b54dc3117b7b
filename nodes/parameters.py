"""The parameters of a chosen method, as they come from the topology file."""

from collections.abc import Mapping
from typing import Any


def check_known(method: str, parameters: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """ValueError with a sentence if one of the parameters is none of the `known`."""
    for name in parameters:
        if name not in known:
            takes = ", ".join(known) if known else "none"
            raise ValueError(f"{method} has no parameter {name!r}; it takes {takes}")
