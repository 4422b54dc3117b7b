"""The cells of a sweep: each combination of values, with each seed. Pure: the same request gives the same cells."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import product
from typing import Any

from testbed.errors import InputError
from testbed.topology.diagnostics.hints import listing, quoted
from testbed.topology.names import MAX_LAB_NAME
from testbed.topology.parse.overrides import parse_override
from testbed.topology.units import (
    DURATION,
    FREQUENCY,
    LENGTH,
    RAINFALL,
    RATE,
    SHARE,
    SIZE,
    SPEED,
    Quantity,
    UnitError,
)

# `--set PATH=VALUES` of a sweep: a list (`fifo,dmpq-pc`), a range (`4..20kB/s`, `4..20:4kB/s`), or one value. Pure.


STEPS = 5  # values of a range without a step
MOST_VALUES = 1_000  # of one axis
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_RANGE = re.compile(
    rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?\s*([A-Za-z%][A-Za-z/%]*)?\Z", re.ASCII
)
# The end of a column's name, by the base unit of its numbers.
COLUMN_ENDS: tuple[tuple[Quantity, str], ...] = (
    (RATE, "bps"),
    (DURATION, "s"),
    (SIZE, "bytes"),
    (SHARE, "share"),
    (LENGTH, "m"),
    (RAINFALL, "mm_per_h"),
    (SPEED, "m_per_s"),
    (FREQUENCY, "per_s"),
)
_UNITS = frozenset(
    unit for quantity, _ in COLUMN_ENDS for unit in (*quantity.units, *quantity.mistaken)
)
_BEGIN = re.compile(
    rf"{_NUMBER}(?:\.\.{_NUMBER}(?::{_NUMBER})?)?", re.ASCII
)  # of a number or range
_WITHOUT_UNIT = re.compile(rf"{_BEGIN.pattern}\Z", re.ASCII)
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
    parts = _with_units(override.path, split(override.value))
    values = tuple(value for part in parts for value in _spread(override.path, part))
    if len(values) > MOST_VALUES:
        raise InputError(
            f"--set {override.path}: {len(values):,} values are too many",
            f"at most {MOST_VALUES:,}; a longer step gives fewer",
        )
    if twice := next((value for value in values if values.count(value) > 1), None):
        raise InputError(f"--set {override.path}: {quoted(twice)} is there twice", "leave one out")
    return Axis(override.path, values)


def split(text: str) -> list[str]:
    """Split at commas outside brackets and quotes, so that a value may be a list or a mapping itself."""
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


def _with_units(path: str, parts: Sequence[str]) -> list[str]:
    """Each plain number with the unit behind a later number; InputError if it is not clear which."""
    plain = [place for place, part in enumerate(parts) if _WITHOUT_UNIT.match(part)]
    units = {place: unit for place, part in enumerate(parts) if (unit := _unit_of(part))}
    if not plain or not units:
        return [*parts]
    if len(different := list(dict.fromkeys(units.values()))) > 1:
        raise InputError(
            f"--set {path}: {_listed(parts, plain)} could be in {' or in '.join(different)}",
            "write the unit behind each number",
        )
    (unit,) = different
    if later := [place for place in plain if place > max(units)]:
        raise InputError(
            f"--set {path}: {_listed(parts, later)} {'comes' if len(later) == 1 else 'come'} "
            "after the last unit",
            f"write the unit behind the last number, as in 5,10,20{unit}, or behind each",
        )
    return [f"{part}{unit}" if place in plain else part for place, part in enumerate(parts)]


def _unit_of(part: str) -> str:
    """The unit of a number or a range; empty if it has none."""
    unit = part[found.end() :].strip() if (found := _BEGIN.match(part)) else ""
    return unit if unit in _UNITS else ""


def _listed(parts: Sequence[str], places: Sequence[int]) -> str:
    return listing([quoted(parts[place]) for place in places])


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


# The values of an axis as numbers, for tables. Pure.


PLAIN_END = "number"  # of numbers without a unit
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
_NOTHING = ("none", "null", "~", "")  # such as a link without a rate


def numbers_of(axis: Axis) -> tuple[str, dict[str, float | None]] | None:
    """The name of a numeric column, and each value as its number; None if they are not numbers of one quantity."""
    known = {value: _number_of(value) for value in axis.values if value not in _NOTHING}
    ends = {None if one is None else one[0] for one in known.values()}
    if len(ends) != 1 or (end := next(iter(ends))) is None:
        return None
    numbers = {value: one[1] for value, one in known.items() if one is not None}
    return f"{axis.path}_{end}", {value: numbers.get(value) for value in axis.values}


def _number_of(value: str) -> tuple[str, float] | None:
    """The end of the column's name, and the number in the base unit."""
    text = value[1:-1] if value[:1] in _QUOTES and value[:1] == value[-1:] else value
    for quantity, end in COLUMN_ENDS:
        try:
            number, unit = quantity.split(text)
        except UnitError:
            continue
        size = quantity.units[unit]  # of a frequency: the seconds in which so many come
        return end, float(number / size if quantity is FREQUENCY else number * size)
    return (PLAIN_END, float(value)) if _PLAIN_NUMBER.match(value) else None


MOST_CELLS = 10_000
SEED = "seed"  # of the file: what trials differ in
NAME = "name"  # of the lab: each cell has its own


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: its number from 1, what is set, and the seed of its trial."""

    number: int
    settings: tuple[tuple[str, str], ...]  # path, value; in the order of the axes
    trial: int  # from 1
    seed: int

    @property
    def overrides(self) -> list[str]:
        """As `--set` has them."""
        return [*(f"{path}={value}" for path, value in self.settings), f"{SEED}={self.seed}"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Everything that decides what a sweep computes; two that are equal continue each other."""

    lab: str
    axes: tuple[Axis, ...]
    trials: int
    seed: int  # of the first trial
    backend: str | None
    digest: str  # of the files that it is about

    def cells(self) -> tuple[Cell, ...]:
        """All of them, the trials of a combination side by side."""
        combinations = product(
            *([(axis.path, value) for value in axis.values] for axis in self.axes)
        )
        each = (
            (settings, trial) for settings in combinations for trial in range(1, self.trials + 1)
        )
        return tuple(
            Cell(number, settings, trial, self.seed + trial - 1)
            for number, (settings, trial) in enumerate(each, start=1)
        )

    def name_of(self, cell: Cell) -> str:
        """Of the cell's lab: labs that are up at the same time, also of other sweeps, must not share one."""
        ending = f"-{self.identity}-c{cell.number}"
        return f"{self.lab[: MAX_LAB_NAME - len(ending)].rstrip('-')}{ending}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def identity(self) -> str:
        """Eight digits by which sweeps that continue each other know each other."""
        text = json.dumps(self.as_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def from_json(data: dict[str, Any]) -> Sweep:
    """The inverse of `as_json`, also after a trip through a file."""
    axes = tuple(Axis(axis["path"], tuple(axis["values"])) for axis in data["axes"])
    return Sweep(**{**data, "axes": axes})


def check_axes(axes: Sequence[Axis], trials: int) -> None:
    """InputError if they cannot be combined."""
    paths = [axis.path for axis in axes]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise InputError(f"--set: {twice} is set twice", "write all its values behind one --set")
    if SEED in paths:
        raise InputError(
            "--set seed: the seed is what trials differ in", "use --trials, or --seed for the first"
        )
    if NAME in paths:
        raise InputError("--set name: each cell's lab has a name of its own", "use --name")
    cells = trials
    for axis in axes:
        cells *= len(axis.values)
    if cells > MOST_CELLS:
        raise InputError(
            f"{cells:,} cells are too many", f"at most {MOST_CELLS:,}: fewer values or trials"
        )
