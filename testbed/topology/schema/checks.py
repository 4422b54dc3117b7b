"""Checks of single values of a topology file. Each check has its part of the JSON Schema."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from testbed.topology import units
from testbed.topology.diagnostics.hints import did_you_mean, listing, quoted
from testbed.topology.names import PLACEHOLDERS, name_problem, topic_problem

MAX_SELECTORS = 100  # in one event
MAX_RATES = 10_000
OURS = "testbed"  # the type of errors with a complete message and hint


@dataclass(frozen=True, eq=False)  # hashed by identity, for type annotations
class Checked:
    """An argument of `Annotated[...]`: pydantic calls `check`, editors use `schema`."""

    check: Callable[[Any], Any]
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.schema)


def refuse(message: str, hint: str = "", item: int | None = None) -> PydanticCustomError:
    """An error with a complete text; `item` is the index of the wrong item of a list."""
    context = {"message": message, "hint": hint, "item": item}
    return PydanticCustomError(OURS, "{message}", context)


def described(value: object) -> str:
    """Describe a value of the wrong kind."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the word {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {quoted(value)}"
        case dict():
            return "a mapping"
        case _:
            return "a list"


def text(value: object, what: str) -> str:
    """The value if it is a text."""
    if isinstance(value, str):
        return value
    hint = "write one, or remove the key" if value is None else "put it in quotes"
    raise refuse(f"{what} is expected here, not {described(value)}", hint)


def line(what: str) -> Checked:
    """Any text of one line."""

    def check(value: object) -> str:
        given = text(value, what)
        if not given.strip():
            raise refuse(f"{what} is expected here", "write one, or remove the item")
        return given

    return Checked(check, {"type": "string", "minLength": 1})


def quantity(read: Callable[[object], Any], kind: units.Quantity) -> Checked:
    """A number with a unit."""

    def check(value: object) -> Any:
        try:
            return read(value)
        except units.UnitError as error:
            raise refuse(str(error), error.hint) from None

    return Checked(check, {"type": "string", "pattern": kind.pattern})


def choice(what: str, names: Iterable[str]) -> Checked:
    """One of these names; `what` is the noun for them, without an article."""
    known = tuple(names)

    def check(value: object) -> str:
        if isinstance(value, str) and value in known:
            return value
        if isinstance(value, str):
            raise refuse(f"there is no {what} {quoted(value)}", did_you_mean(value, known))
        raise refuse(f"a name is expected here, not {described(value)}", f"one of {listing(known)}")

    return Checked(check, {"enum": list(known)})


def whole(least: int, most: int) -> Checked:
    """A whole number within bounds."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise refuse(
                f"a whole number is expected here, not {described(value)}",
                f"write digits only, from {least:,} to {most:,}, without a leading zero",
            )
        if not least <= value <= most:
            raise refuse(f"{value} is out of range", f"it goes from {least:,} to {most:,}")
        return value

    return Checked(check, {"type": "integer", "minimum": least, "maximum": most})


def flag() -> Checked:
    """true or false; other words of YAML 1.1 for them, such as yes, are refused."""

    def check(value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise refuse(
            f"true or false is expected here, not {described(value)}", "write true or false"
        )

    return Checked(check, {"type": "boolean"})


def probability() -> Checked:
    """A probability, as 0.1 or 10%."""
    hint = "write it like 0.1 or 10%"

    def check(value: object) -> float:
        if isinstance(value, str):
            try:
                value = units.parse_share(value)
            except units.UnitError as error:
                raise refuse(str(error), hint) from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(f"a probability is expected here, not {described(value)}", hint)
        if not 0 <= value <= 1:
            raise refuse(f"a probability goes from 0 to 1, not {value}", hint)
        if value == 0:
            raise refuse(
                "with a probability of zero, the event publishes nothing",
                "remove the event instead",
            )
        return float(value)

    number = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    return Checked(check, {"anyOf": [number, {"type": "string", "pattern": units.SHARE.pattern}]})


_PLACE = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


def _coordinates(value: object, item: int | None = None) -> tuple[float, float]:
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 2 or not all(type(number) in (int, float) for number in numbers):
        raise refuse("a place is [latitude, longitude]", "write it like [33.5597, 133.5311]", item)
    latitude, longitude = float(numbers[0]), float(numbers[1])
    if abs(latitude) > 90 or abs(longitude) > 180:
        swapped = abs(longitude) <= 90 and abs(latitude) <= 180
        raise refuse(
            "invalid coordinates: latitude goes from -90 to 90, longitude from -180 to 180",
            "latitude comes first; swap the two"
            if swapped
            else "write it like [33.5597, 133.5311]",
            item,
        )
    return latitude, longitude


def place() -> Checked:
    """Latitude and longitude."""
    return Checked(_coordinates, _PLACE)


def places() -> Checked:
    """One place for all members of a group, or a list with one for each."""

    def check(value: object) -> tuple[tuple[float, float], ...]:
        if isinstance(value, list) and any(isinstance(item, list) for item in value):
            return tuple(_coordinates(item, index) for index, item in enumerate(value))
        return (_coordinates(value),)

    return Checked(check, {"anyOf": [_PLACE, {"type": "array", "items": _PLACE, "minItems": 1}]})


def corners() -> Checked:
    """An area: two opposite corners, in any order."""

    def check(value: object) -> tuple[tuple[float, float], tuple[float, float]]:
        if not isinstance(value, list) or len(value) != 2:
            raise refuse(
                "an area is two corners: [[latitude, longitude], [latitude, longitude]]", _AREA
            )
        one, other = (_coordinates(item, index) for index, item in enumerate(value))
        return one, other

    return Checked(check, {"type": "array", "items": _PLACE, "minItems": 2, "maxItems": 2})


_AREA = "write it like [[33.5, 133.5], [33.8, 133.7]]"


def bounds() -> Checked:
    """The least and the largest value, both included."""
    hint = "write it like [0, 90]"

    def check(value: object) -> tuple[float, float]:
        numbers = value if isinstance(value, list) else []
        if len(numbers) != 2 or not all(type(number) in (int, float) for number in numbers):
            raise refuse("two numbers are expected here, [least, most]", hint)
        low, high = float(numbers[0]), float(numbers[1])
        if low > high:
            raise refuse(
                f"the interval from {low:g} to {high:g} is empty", "write the smaller number first"
            )
        return low, high

    items = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return Checked(check, items)


def number() -> Checked:
    """Any number."""

    def check(value: object) -> float:
        if type(value) not in (int, float):
            raise refuse(f"a number is expected here, not {described(value)}", "write it like 4.2")
        return float(value)  # type: ignore[arg-type]

    return Checked(check, {"type": "number"})


def factor(least: float, most: float, example: str = "20") -> Checked:
    """A factor: a number above zero, within bounds."""
    hint = f"write a number from {least:g} to {most:,g}, as in {example}"

    def check(value: object) -> float:
        if type(value) not in (int, float):
            raise refuse(f"a number is expected here, not {described(value)}", hint)
        if not least <= value <= most:  # type: ignore[operator]
            raise refuse(f"{value} is out of range", hint)
        return float(value)  # type: ignore[arg-type]

    return Checked(check, {"type": "number", "minimum": least, "maximum": most})


def rates() -> Checked:
    """A list of numbers from zero on."""
    hint = "write a list of numbers, as in [0, 20, 65.5, 10]"

    def check(value: object) -> tuple[float, ...]:
        if not isinstance(value, list):
            raise refuse(f"a list of numbers is expected here, not {described(value)}", hint)
        if not value:
            raise refuse("the list is empty", hint)
        for index, item in enumerate(value):
            if type(item) not in (int, float) or not 0 <= item <= 1_000:
                raise refuse("a number from 0 to 1,000 is expected here", hint, index)
        if len(value) > MAX_RATES:
            raise refuse(f"more than {MAX_RATES:,} numbers", "put them into a CSV file")
        return tuple(float(item) for item in value)

    item = {"type": "number", "minimum": 0, "maximum": 1_000}
    return Checked(check, {"type": "array", "items": item, "minItems": 1, "maxItems": MAX_RATES})


def parameter() -> Checked:
    """A parameter of a method, which checks it itself: text, number, true or false."""

    def check(value: object) -> str | int | float | bool:
        if isinstance(value, str | int | float | bool):
            return value
        raise refuse(
            f"a parameter is a text, a number, true or false, not {described(value)}",
            "write a single value",
        )

    return Checked(check, {"type": ["string", "number", "boolean"]})


def selectors(nobody: str = "nothing happens") -> Checked:
    """One selector of nodes or a list of them, as texts; `nobody`: the effect of an empty list, for the message."""
    hint = 'write a node\'s name or "sensors[*]", "sensors[0]", "sensors[1..3]", or a list of these'

    def check(value: object) -> tuple[str, ...]:
        if not isinstance(value, list | str):
            raise refuse(f"nodes are expected here, not {described(value)}", hint)
        several = [value] if isinstance(value, str) else value
        for index, item in enumerate(several):
            if not isinstance(item, str):
                raise refuse(f"nodes are expected here, not {described(item)}", hint, index)
        if not several:
            raise refuse(f"an empty list: {nobody}", hint)
        if len(several) > MAX_SELECTORS:
            raise refuse(f"more than {MAX_SELECTORS} selectors", "make a group of these nodes")
        return tuple(several)

    one = {"type": "string"}
    return Checked(
        check,
        {"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_SELECTORS}]},
    )


# Values of external nodes, and the router of a node.


MAX_WORDS = 200  # of a command
# As container engines define it: [host[:port]/]name[/name...][:tag][@digest]
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_IMAGE = (
    rf"(?=.{{1,255}}$)({_HOST}/)?{_PART}(/{_PART})*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_PACKAGE = r"[a-z0-9][a-z0-9+.-]{1,99}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_INSIDE = r"(/[A-Za-z0-9._+-]+)+"


def _matching(what: str, pattern: str, hint: str) -> Checked:
    def check(value: object) -> str:
        given = text(value, what)
        if not re.fullmatch(pattern, given):
            raise refuse(f"{quoted(given)} cannot be {what}", hint)
        return given

    return Checked(check, {"type": "string", "pattern": f"^{pattern}$"})


def image() -> Checked:
    """The name of a container image."""
    return _matching(
        "an image's name", _IMAGE, "write it like eclipse-mosquitto:2, in small letters"
    )


def package() -> Checked:
    """The name of a Debian package."""
    return _matching("a package's name", _PACKAGE, "write it like mosquitto")


def variable() -> Checked:
    """The name of an environment variable."""
    return _matching("a variable's name", _VARIABLE, "write it like LOG_LEVEL")


def variable_value() -> Checked:
    """The value of a variable; a number must be quoted, as it would be ambiguous."""
    return Checked(lambda value: text(value, "a variable's value"), {"type": "string"})


def inside_path() -> Checked:
    """The path of a file in the container."""

    def check(value: object) -> str:
        given = text(value, "a path")
        if not re.fullmatch(_INSIDE, given) or ".." in given.split("/"):
            raise refuse(
                f"{quoted(given)} cannot be a path inside the container",
                "write an absolute path like /etc/mosquitto/mosquitto.conf",
            )
        return given

    return Checked(check, {"type": "string", "pattern": f"^{_INSIDE}$"})


def source_path() -> Checked:
    """A file on this machine; a relative path starts at the topology file's folder."""
    return Checked(lambda value: text(value, "a file's path"), {"type": "string"})


def router() -> Checked:
    """The router of a node: a node's name, or a selector of several."""
    return Checked(lambda value: text(value, "a router's name"), {"type": "string"})


def command() -> Checked:
    """A list of words, or a line for the image's shell."""
    hint = (
        "write a list like [mosquitto, -c, /etc/mosquitto/mosquitto.conf], or a line for the shell"
    )

    def check(value: object) -> tuple[str, ...]:
        if value == [] or (isinstance(value, str) and not value.strip()):
            raise refuse("the command is empty", hint)
        if isinstance(value, str):
            return ("sh", "-c", value)
        if not isinstance(value, list):
            raise refuse(f"a command is expected here, not {described(value)}", hint)
        for index, word in enumerate(value):
            if not isinstance(word, str):
                raise refuse(
                    f"a text is expected here, not {described(word)}", "put it in quotes", index
                )
        if len(value) > MAX_WORDS:
            raise refuse(f"more than {MAX_WORDS} words", "put them into a file")
        return tuple(value)

    words = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_WORDS}
    return Checked(check, {"anyOf": [{"type": "string"}, words]})


class Section(BaseModel):
    """Any mapping of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# Names and topics.


_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def name(what: str, most: int) -> Checked:
    """The name of a lab, node or group."""

    def check(value: object) -> str:
        given = text(value, what)
        if problem := name_problem(given, most):
            raise refuse(*problem)
        return given

    return Checked(check, {"type": "string", "pattern": f"^[a-z0-9][a-z0-9-]{{0,{most - 1}}}$"})


def label(what: str) -> Checked:
    """A name for this file and the reports only: of a profile, a tag or a dimension."""

    def check(value: object) -> str:
        given = text(value, what)
        if not re.fullmatch(_LABEL, given):
            raise refuse(
                f"{quoted(given)} cannot be {what}: letters, digits and . _ - are allowed",
                "at most 40 characters, the first a letter or digit",
            )
        return given

    return Checked(check, {"type": "string", "pattern": f"^{_LABEL}$"})


def topic() -> Checked:
    """A topic of a subscription: one exact topic."""

    def check(value: object) -> str:
        given = text(value, "a topic")
        if problem := topic_problem(given):
            raise refuse(*problem)
        if "{" in given or "}" in given:
            raise refuse(
                "a subscription is an exact topic; { } stand for a publisher only in `publish`",
                "write the publisher's name itself, as in readings/sensors-0",
            )
        return given

    return Checked(check, {"type": "string", "pattern": r"^[^+#*{}\s]+$"})


def topic_template() -> Checked:
    """A topic of publications: {node} and {group} stand for the publisher."""

    def check(value: object) -> str:
        given = text(value, "a topic")
        for placeholder in _PLACEHOLDER.findall(given):
            if placeholder not in PLACEHOLDERS:
                raise refuse(
                    f"there is no placeholder {quoted('{' + placeholder + '}')}",
                    did_you_mean(placeholder, PLACEHOLDERS),
                )
        bare = _PLACEHOLDER.sub("x", given)
        if "{" in bare or "}" in bare:
            raise refuse("a { or } without its partner", "placeholders are {node} and {group}")
        if problem := topic_problem(bare):
            raise refuse(*problem)
        return given

    return Checked(check, {"type": "string", "pattern": r"^[^+#*\s]+$"})
