"""The parameters of a chosen method, as they come from the topology file."""

from collections.abc import Mapping
from typing import Any


class ParameterError(ValueError):
    """The method does not take this parameter, or not with this value; `name` is the parameter, the text the reason."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def check_known(method: str, parameters: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """ParameterError with a sentence if one of the parameters is none of the `known`."""
    for name in parameters:
        if name not in known:
            takes = ", ".join(known) if known else "none"
            raise ParameterError(name, f"{method} has no parameter {name!r}; it takes {takes}")


def whole_number(
    method: str,
    parameters: Mapping[str, Any],
    name: str,
    default: int,
    least: int,
    most: int | None = None,
) -> int:
    """The parameter of that name; ParameterError if it is no whole number of the range."""
    value = parameters.get(name, default)
    right = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not right or (most is not None and value > most):
        span = f"{least} or more" if most is None else f"{least} to {most}"
        raise ParameterError(
            name, f"{method}'s {name} is {value!r}; it takes a whole number, {span}"
        )
    return int(value)


def seconds(
    method: str,
    parameters: Mapping[str, Any],
    name: str,
    default: float,
    most: float,
    zero: bool = False,
) -> float:
    """The parameter of that name; ParameterError if it is no time from 0 (itself if `zero`) up to `most` seconds."""
    value = parameters.get(name, default)
    right = isinstance(value, int | float) and not isinstance(value, bool)
    if not right or not (0 < value <= most or (zero and value == 0)):
        least = "0 or more" if zero else "more than 0"
        raise ParameterError(
            name,
            f"{method}'s {name} is {value!r}; it takes seconds, {least} and at most {most:g}",
        )
    return float(value)


def one_of(method: str, parameters: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """The parameter of that name, by default the first choice; ParameterError if it is none of them."""
    value = parameters.get(name, choices[0])
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(
            name, f"{method}'s {name} is {value!r}; it takes {' or '.join(choices)}"
        )
    return value
