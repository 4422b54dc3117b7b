"""`--set PATH=VALUES` of a sweep: a list (`fifo,dmpq-pc`), a range (`4..20kB/s`, `4..20:4kB/s`), or one value. Pure."""

import re
from dataclasses import dataclass
from decimal import Decimal

from testbed.errors import InputError
from testbed.topology.hints import quoted
from testbed.topology.overrides import parse_override

STEPS = 5  # values of a range that does not say how far apart they are
MOST_VALUES = 1_000  # of one axis
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_RANGE = re.compile(
    rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?\s*([A-Za-z%][A-Za-z/%]*)?\Z", re.ASCII
)
_OPENING, _CLOSING, _QUOTES = "[{(", "]})", "\"'"


@dataclass(frozen=True, slots=True)
class Axis:
    """A path of the file and the values that it takes, one after another."""

    path: str
    values: tuple[str, ...]

    @property
    def varies(self) -> bool:
        return len(self.values) > 1


def parse_axis(text: str) -> Axis:
    """PATH=VALUES; InputError if it is not of that form."""
    override = parse_override(text)
    values = tuple(
        value for part in split(override.value) for value in _spread(override.path, part)
    )
    if len(values) > MOST_VALUES:
        raise InputError(
            f"--set {override.path}: {len(values):,} values are too many",
            f"at most {MOST_VALUES:,}; a longer step gives fewer",
        )
    if twice := next((value for value in values if values.count(value) > 1), None):
        raise InputError(f"--set {override.path}: {quoted(twice)} is there twice", "leave one out")
    return Axis(override.path, values)


def split(text: str) -> list[str]:
    """At commas that stand in no bracket and no quotes, so that a value may be a list or a mapping itself."""
    parts, depth, quote, begin = [], 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def _spread(path: str, text: str) -> list[str]:
    """The values of a range, evenly spaced, both ends among them; anything else is one value."""
    found = _RANGE.match(text)
    if found is None:
        return [text]
    low, high = Decimal(found[1]), Decimal(found[2])
    unit = found[4] or ""
    if low >= high:
        raise InputError(
            f"--set {path}: {quoted(text)} goes nowhere", "write the smaller end first"
        )
    if found[3] is None:
        numbers = _evenly(low, high, whole=not unit and low % 1 == high % 1 == 0)
    else:
        numbers = _by_steps(path, text, low, high, Decimal(found[3]))
    return [f"{_plain(number)}{unit}" for number in numbers]


def _evenly(low: Decimal, high: Decimal, *, whole: bool) -> list[Decimal]:
    """STEPS of them; whole numbers without a unit, such as a count of nodes, stay whole."""
    numbers = [low + (high - low) * place / (STEPS - 1) for place in range(STEPS)]
    return [*dict.fromkeys(number.to_integral_value() if whole else number for number in numbers)]


def _by_steps(path: str, text: str, low: Decimal, high: Decimal, step: Decimal) -> list[Decimal]:
    if step <= 0 or (high - low) / step >= MOST_VALUES:
        raise InputError(
            f"--set {path}: {quoted(text)} has too many steps", f"at most {MOST_VALUES:,} values"
        )
    return [low + step * place for place in range(int((high - low) // step) + 1)]


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
