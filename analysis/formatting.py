"""Formats numbers for people: sizes, rates, shares, and times with the digits that their error allows. Pure."""

import math
import re
from collections.abc import Mapping
from typing import Any

NARROW = "\u00a0"  # keeps a number and its unit on one line
UNITS = (
    (1.0, "s", 2),
    (1e-3, "ms", 0),
    (1e-6, "µs", 0),
)  # with the default number of decimal digits
FINE = 0.1  # of a second: below, milliseconds have a decimal digit
LEADING = 3  # an error with a smaller leading digit has two digits: 12 would become 20
INDISTINGUISHABLE = "not distinguishable from 0"


def plain(value: float | None) -> str:
    """A time without an error."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return f"{value * 1e6:.0f}{NARROW}µs"
    if value < 1:
        return f"{value * 1000:.{1 if value < 0.1 else 0}f}{NARROW}ms"
    return f"{value:.2f}{NARROW}s"


def seconds_with_error(value: float | None, error: float = 0.0) -> str:
    """A time with its error, with the digits that the error allows."""
    if value is None or not error:
        return plain(value)
    if value + error < 0:
        return f"{_around(value, error)} (impossible: before it began)"
    if value <= 0:
        return f"{INDISTINGUISHABLE} (≤{NARROW}{_at_most(value + error)})"
    if value < error:
        return f"≤{NARROW}{_at_most(value + error)}"
    return _around(value, error)


def _around(value: float, error: float) -> str:
    """Value and error in the same unit, rounded so that the interval shown contains the true one."""
    unit, name, usual = _unit(max(abs(value), error))
    if name == "ms" and abs(value) < FINE:
        usual = 1
    scaled, off = value / unit, error / unit
    digits = -math.floor(math.log10(off))
    if off * 10.0**digits < LEADING:
        digits += 1
    digits = min(usual, digits)
    shown = round(scaled, digits)
    step = 10.0**-digits
    bound = math.ceil((off + abs(scaled - shown)) / step - 1e-9) * step
    return f"{_written(shown, digits)} ± {_written(bound, digits)}{NARROW}{name}"


def _at_most(value: float) -> str:
    """Rounded up to two digits."""
    if value <= 0:
        return f"0{NARROW}s"
    unit, name, _ = _unit(value)
    scaled = value / unit
    digits = 1 - math.floor(math.log10(scaled))
    step = 10.0**-digits
    return f"{_written(math.ceil(scaled / step - 1e-9) * step, digits)}{NARROW}{name}"


def _unit(value: float) -> tuple[float, str, int]:
    return next((one for one in UNITS if value >= one[0]), UNITS[-1])


def _written(value: float, digits: int) -> str:
    return f"{value:.{max(0, digits)}f}".replace("-", "−")


def seconds(value: float | None) -> str:
    """Format a time."""
    return plain(value)


def at_least(bound: float) -> str:
    """A lower bound of a time, rounded down."""
    for unit, name, digits in ((10.0, "s", 0), (1.0, "s", 1), (1e-3, "ms", 0), (1e-6, "µs", 0)):
        if bound >= unit:
            scaled = bound / min(unit, 1.0) * 10**digits
            return f"{math.floor(scaled + 1e-9) / 10**digits:.{digits}f}{NARROW}{name}"
    return f"0{NARROW}s"


def not_within(bound: float) -> str:
    """A percentile that was not reached: it takes at least this time."""
    return f"not within {at_least(bound)}" if bound >= UNITS[-1][0] else "not reached"


def value_or_bound(value: float | None, bound: float | None, error: float = 0.0) -> str:
    """A percentile with its error, or the bound of one that was not reached."""
    if value is None and bound is not None:
        return not_within(bound)
    return seconds_with_error(value, error)


def percentile(row: Mapping[str, Any], name: str, error: float = 0.0) -> str:
    """The same of a row with bounds in `not_within_s`; earlier versions wrote none."""
    return value_or_bound(row[name], (row.get("not_within_s") or {}).get(name), error)


def both_sides(sides: Mapping[str, Mapping[str, Any]]) -> str:
    """A percentile of a run, and of the `first` one that it is compared with; one of them did not reach it."""
    other, first = (
        value_or_bound(one["value"], one["not_within_s"]).replace(NARROW, " ")
        for one in (sides["other"], sides["first"])
    )
    return f"{other}; the first: {first}"


def size(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.{0 if unit == 'B' else 1}f}{NARROW}{unit}"
        count /= 1000
    return f"{count:.1f}{NARROW}GB"


def rate(bits: float) -> str:
    """Format a bit rate."""
    for unit in ("bit/s", "kbit/s", "Mbit/s"):
        if abs(bits) < 1000:
            return f"{bits:.4g}{NARROW}{unit}"
        bits /= 1000
    return f"{bits:.4g}{NARROW}Gbit/s"


def percent(share: float, digits: str = ".0f") -> str:
    """Format a share as a percentage."""
    return f"{share * 100:{digits}}{NARROW}%"


DIGEST = "sha256:"
DIGITS = 12  # of a digest, as container engines show it


def format_fact(name: str, value: Any) -> tuple[str, str]:
    """A name and its value with a unit, which the end of the name gives."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        for ending, text_of in (("_bytes", size), ("_s", seconds)):
            if name.endswith(ending):
                return name.removesuffix(ending).replace("_", " "), text_of(value)
        if name == "size":
            return name, size(value)
    return name.replace("_", " "), _plain(value)


def _plain(value: Any) -> str:
    """A value as text; unknown parts are left out, and items of a mapping have their names."""
    if isinstance(value, dict):
        known = {key: item for key, item in value.items() if item is not None}
        if any(isinstance(item, dict) for item in known.values()):
            return "; ".join(f"{key}: {_plain(item)}" for key, item in known.items())
        return ", ".join(" ".join(format_fact(key, item)) for key, item in known.items())
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, str) and value.startswith(DIGEST):
        return value[: len(DIGEST) + DIGITS]
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """A key that sorts as people count: sensors-2 before sensors-10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((False, int(part), "") if part.isdecimal() else (True, 0, part) for part in parts)
