"""A link's values as people write and read them: `64kbit/s`, `200ms`, `1%`, `16kB`, `none`. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from testbed.errors import InputError
from testbed.topology.units import (
    DURATION,
    RATE,
    SHARE,
    SIZE,
    Quantity,
    UnitError,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size,
)

NONE = "none"  # no limit, or the default
EMPTY = "-"

_FIELDS: Mapping[str, tuple[str, Callable[[object], float | int], Quantity]] = {
    "rate": ("rate_bps", parse_rate, RATE),
    "delay": ("delay_s", parse_duration, DURATION),
    "jitter": ("jitter_s", parse_duration, DURATION),
    "loss": ("loss", parse_share, SHARE),
    "queue": ("queue_bytes", parse_size, SIZE),
}
_MAY_BE_NONE = ("rate", "queue")
_ZERO_RATE = "`testbed link cut` blocks a link; `--rate none` removes the limit"


def read_values(texts: Mapping[str, str | None]) -> dict[str, float | int | None]:
    """Fields of a Shape from options' texts (rate, delay, jitter, loss, queue); None: the option was not given."""
    return {
        _FIELDS[option][0]: _read(option, text)
        for option, text in texts.items()
        if text is not None
    }


def _read(option: str, text: str) -> float | int | None:
    _, parse, quantity = _FIELDS[option]
    if text == NONE and option in _MAY_BE_NONE:
        return None
    try:
        return parse(text)
    except UnitError as error:
        zero = option == "rate" and _is_zero(quantity, text)
        raise InputError(f"--{option}: {error}", _ZERO_RATE if zero else error.hint) from error


def _is_zero(quantity: Quantity, text: str) -> bool:
    try:
        return quantity.read(text) == 0
    except UnitError:
        return False


def format_values(shape: Mapping[str, Any]) -> dict[str, str]:
    """Option -> text, for the fields of a Shape that are given; `-` for a value without effect."""
    return {
        option: _write(option, quantity, shape[field])
        for option, (field, _, quantity) in _FIELDS.items()
        if field in shape
    }


def _write(option: str, quantity: Quantity, value: float | int | None) -> str:
    if value is None or (value == 0 and option != "queue"):
        return EMPTY
    return quantity.write(value)
