"""Quantities of a topology file: a number with its unit, `128kbit/s`, `60ms`, `0.5%`.

Reading is exact (decimal arithmetic, one rounding to float at the end); `Quantity.write` is the inverse.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from testbed.topology.diagnostics.hints import quoted

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,20})?|\.[0-9]{1,20}) ?([A-Za-zµμ%/][^\s:]*)?\Z")


class UnitError(ValueError):
    """A value that is not the expected quantity; `hint` shows a valid one."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of quantity and its units."""

    name: str  # with article, as in "a rate"
    example: str
    units: Mapping[str, Decimal]  # unit -> its size in the base unit
    usual: tuple[
        str, ...
    ]  # the units to write, smallest first; decimal ones, so that writing is exact
    mistaken: Mapping[str, str] = field(default_factory=dict)  # not a unit -> advice, N the number

    @property
    def pattern(self) -> str:
        """A regular expression (ECMA 262) for editors."""
        names = "|".join(self.units)
        return rf"^([0-9]+(\.[0-9]+)?|\.[0-9]+) ?({names})$"

    def split(self, value: object) -> tuple[Decimal, str]:
        """Number and unit; UnitError if the value is no such quantity."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UnitError(f"{self.name} is expected here", self._like())
        found = _QUANTITY.match(str(value))
        if found is None:
            raise UnitError(f"{quoted(value)} is not {self.name}", self._like())
        number, unit = found.groups()
        if not unit:
            raise UnitError(
                f"{self.name} needs a unit",
                self._with_unit(number),
            )
        if unit not in self.units:
            raise UnitError(
                f"{quoted(unit, 20)} is not a unit of {self.name}", self._advice(number, unit)
            )
        return Decimal(number), unit

    def read(self, value: object) -> Decimal:
        """The value in the base unit."""
        number, unit = self.split(value)
        return number * self.units[unit]

    def write(self, value: float) -> str:
        """A text that reads back as the same value, in the largest unit of which there is at least one."""
        amount = Decimal(repr(value))
        fitting = [unit for unit in self.usual if amount >= self.units[unit]]
        unit = fitting[-1] if fitting else self.usual[0]
        text = format(amount / self.units[unit], "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text) + unit

    def _with_unit(self, number: str) -> str:
        if "%" in self.units and Decimal(number) <= 1:
            return f"write {(Decimal(number) * 100).normalize():f}% if that is meant"
        return f"{number} of what? {self._like()}"

    def _like(self) -> str:
        return f"write it like {self.example}"

    def _advice(self, number: str, unit: str) -> str:
        if advice := self.mistaken.get(unit):
            return advice.replace("N", number)
        folded = {known.casefold(): known for known in self.units}
        if known := folded.get(unit.casefold()):
            return f"upper and lower case matter: {number}{known}"
        return f"units are {', '.join(self.units)}"


def _table(*rows: tuple[str, str]) -> dict[str, Decimal]:
    return {unit: Decimal(size) for unit, size in rows}


def _bits_or_bytes(prefix: str) -> str:
    return f"the unit is ambiguous (bits or bytes): write N{prefix}bit/s or N{prefix}B/s"


RATE = Quantity(
    "a rate",
    "128kbit/s or 10kB/s",
    _table(
        ("bit/s", "1"),
        ("kbit/s", "1e3"),
        ("Mbit/s", "1e6"),
        ("Gbit/s", "1e9"),
        ("B/s", "8"),
        ("kB/s", "8e3"),
        ("MB/s", "8e6"),
        ("KiB/s", "8192"),
        ("MiB/s", "8388608"),
    ),
    ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"),
    {
        "bps": _bits_or_bytes(""),
        "kbps": _bits_or_bytes("k"),
        "Kbps": _bits_or_bytes("k"),
        "Mbps": _bits_or_bytes("M"),
        "kb/s": _bits_or_bytes("k"),
        "Kb/s": _bits_or_bytes("k"),
        "Mb/s": _bits_or_bytes("M"),
        "kbit": "a rate is per second: write Nkbit/s",
        "Mbit": "a rate is per second: write NMbit/s",
        "kB": "a rate is per second: write NkB/s",
        "MB": "a rate is per second: write NMB/s",
    },
)
DURATION = Quantity(
    "a duration",
    "500ms or 20s",
    _table(
        ("ns", "1e-9"), ("us", "1e-6"), ("ms", "1e-3"), ("s", "1"), ("min", "60"), ("h", "3600")
    ),
    ("ns", "us", "ms", "s"),
    {
        "m": "minutes are written Nmin, milliseconds Nms",
        "sec": "write Ns",
        "seconds": "write Ns",
        "msec": "write Nms",
        "µs": "write Nus",
        "μs": "write Nus",
    },
)
_KILO = "write NkB (1,000 bytes each) or NKiB (1,024 bytes each)"
SIZE = Quantity(
    "a size",
    "300B, 20kB (20,000 bytes) or 20KiB (20,480 bytes)",
    _table(("B", "1"), ("kB", "1e3"), ("MB", "1e6"), ("KiB", "1024"), ("MiB", "1048576")),
    ("B", "kB", "MB"),
    {
        "k": _KILO,
        "K": _KILO,
        "KB": _KILO,
        "kb": "bits or bytes? a size is in bytes: write NkB",
        "bytes": "write NB",
    },
)
SHARE = Quantity("a share", "0.5%", _table(("%", "0.01")), ("%",))
LENGTH = Quantity(
    "a length",
    "150mm, 4m or 20km",
    _table(("mm", "1e-3"), ("cm", "1e-2"), ("m", "1"), ("km", "1e3")),
    ("mm", "m", "km"),
)
RAINFALL = Quantity(
    "millimetres per hour",
    "100mm/h",
    _table(("mm/h", "1"), ("mm/min", "60")),
    ("mm/h",),
    {"mm": "per hour? write Nmm/h"},
)
SPEED = Quantity("a speed", "3.5km/s", _table(("m/s", "1"), ("km/s", "1e3")), ("m/s", "km/s"))
FREQUENCY = Quantity(  # the sizes are the seconds in which the number of messages is sent
    "a message rate",
    "2/s or 10/min",
    _table(("/s", "1"), ("/min", "60"), ("/h", "3600")),
    ("/s",),
    {"Hz": "write N/s"},
)


def parse_rate(value: object) -> float:
    """Bits per second."""
    result = float(RATE.read(value))
    if result == 0:
        raise UnitError("a rate must be greater than zero", "leave `rate` out for no limit")
    return result


def parse_duration(value: object) -> float:
    """Seconds."""
    return float(DURATION.read(value))


def parse_size(value: object) -> int:
    """Whole bytes."""
    exact = SIZE.read(value)
    if exact != exact.to_integral_value():
        raise UnitError(
            f"{quoted(value)} is not a whole number of bytes", f"write it like {SIZE.example}"
        )
    return int(exact)


def parse_share(value: object) -> float:
    """A share, 0 to 1."""
    exact = SHARE.read(value)
    if exact > 1:
        raise UnitError("a share is at most 100%", f"write it like {SHARE.example}")
    return float(exact)


def parse_percentage(value: object) -> float:
    """A share that may exceed 1."""
    return float(SHARE.read(value))


def parse_length(value: object) -> float:
    """Metres."""
    return float(LENGTH.read(value))


def parse_rainfall(value: object) -> float:
    """Millimetres per hour."""
    return float(RAINFALL.read(value))


def parse_speed(value: object) -> float:
    """Metres per second, above zero."""
    result = float(SPEED.read(value))
    if result == 0:
        raise UnitError("a speed must be greater than zero", f"write it like {SPEED.example}")
    return result


def write_frequency(per_second: float) -> str:
    """A message rate with the unit of the shortest time in which at least one message comes, rounded to read well."""
    seconds = {unit: float(size) for unit, size in FREQUENCY.units.items()}
    unit = next((unit for unit in seconds if per_second * seconds[unit] >= 1), [*seconds][-1])
    return f"{per_second * seconds[unit]:.4g}{unit}"


_FINEST = 1_000_000_000  # parts of a second


def parse_period(value: object) -> Fraction:
    """Seconds from one message to the next, from a number of messages per time: exact, as 3/s has no decimal period."""
    number, unit = FREQUENCY.split(value)
    if number == 0:
        raise UnitError("a message rate must be greater than zero", "remove the event instead")
    period = Fraction(FREQUENCY.units[unit]) / Fraction(number)
    return max(period.limit_denominator(_FINEST), Fraction(1, _FINEST))
