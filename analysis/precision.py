"""Times in as many digits as their error leaves: 0.38 ± 0.02 s, ≤ 12 ms, not distinguishable from 0. Pure."""

import math

NARROW = "\u00a0"  # keeps a number and its unit on one line
UNITS = (
    (1.0, "s", 2),
    (1e-3, "ms", 0),
    (1e-6, "µs", 0),
)  # with the digits behind the point that are usual
FINE = 0.1  # of a second: below, milliseconds have a digit behind the point
LEADING = 3  # an error that begins with less has two digits: 12 would become 20
NOTHING = "not distinguishable from 0"


def plain(value: float | None) -> str:
    """A time that is known as well as it is shown."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return f"{value * 1e6:.0f}{NARROW}µs"
    if value < 1:
        return f"{value * 1000:.{1 if value < 0.1 else 0}f}{NARROW}ms"
    return f"{value:.2f}{NARROW}s"


def told(value: float | None, error: float = 0.0) -> str:
    """A time that may be off by so much, in no more digits than that leaves."""
    if value is None or not error:
        return plain(value)
    if value + error < 0:
        return f"{_around(value, error)} (impossible: before it began)"
    if value <= 0:
        return f"{NOTHING} (≤{NARROW}{_at_most(value + error)})"
    if value < error:
        return f"≤{NARROW}{_at_most(value + error)}"
    return _around(value, error)


def _around(value: float, error: float) -> str:
    """Value and error in the same unit, rounded so that what is said contains what is known."""
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
