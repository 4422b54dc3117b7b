"""Lines of `expect:`, such as `level 5 delay p99 < 2s`: parsed word by word, and written in a standard form. Pure.

    expectation = {scope} quantity [statistic] relation limit
    scope       = level 5 | level 4.. | level ..2 | level 2..4 | topic NAME | node NAME | from NAME
    statistic   = p50, p95, p99, p99.9, ... | mean | min | max
    relation    = < | <= | == | != | >= | >

`analysis.stats.expectations` computes the quantities of a run; both modules have the same names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from testbed.topology.diagnostics.hints import did_you_mean, listing, quoted
from testbed.topology.model import Expectation
from testbed.topology.units import DURATION, SHARE, UnitError, parse_duration, parse_share

RELATIONS = ("<", "<=", "==", "!=", ">=", ">")
LEVELS = (1, 5)
PLAIN_STATISTICS = ("mean", "min", "max")
SCOPES = ("level", "topic", "node", "from")
_TOKEN = re.compile(r"[<>=!]+|[^\s<>=!]+")
_LEVELS = re.compile(r"([0-9]+)?(\.\.)?([0-9]+)?\Z")
_PERCENTILE = re.compile(r"p([1-9][0-9]?(?:\.[0-9]{1,3})?|0\.[0-9]{1,3})\Z")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?\Z")


class Limit(StrEnum):
    """The kind of a quantity's limit."""

    TIME = "time"  # 2s
    NUMBER = "number"  # 3.5
    COUNT = "count"  # 0, or a share of all deliveries: 1%


@dataclass(frozen=True, slots=True)
class Kind:
    """A quantity of expectations: its meaning, its limit, and whether it has scopes and statistics."""

    about: str
    limit: Limit
    scoped: bool = True  # may be narrowed to a level, topic, receiver or publisher
    statistics: bool = False  # each delivery has a value; the expectation names a statistic


KINDS: dict[str, Kind] = {
    "delay": Kind(
        "from publication to the last byte at the receiver; of deliveries that were made",
        Limit.TIME,
        statistics=True,
    ),
    "hops": Kind("links of the overlay that a delivery crossed", Limit.NUMBER, statistics=True),
    "lost": Kind("deliveries that were not made", Limit.COUNT),
    "delivered": Kind("deliveries that were made", Limit.COUNT),
    "late": Kind("deliveries that took longer than the deadline of their level", Limit.COUNT),
    "duplicates": Kind("copies that came to a receiver besides the first", Limit.COUNT),
    "handed twice": Kind("deliveries that an application got more than once", Limit.COUNT),
    "out of order": Kind("deliveries that something published later has overtaken", Limit.COUNT),
    "published": Kind("messages that were published", Limit.NUMBER, scoped=False),
    "forwards/message": Kind(
        "copies of a publication that nodes sent, on average", Limit.NUMBER, scoped=False
    ),
    "overhead ratio": Kind(
        "bytes on all links for a byte of payload that was sent", Limit.NUMBER, scoped=False
    ),
    "control bytes/s": Kind(
        "what a broker sends besides publications, on average", Limit.NUMBER, scoped=False
    ),
    "retransmitted packets": Kind("TCP packets that were sent again", Limit.NUMBER, scoped=False),
    "fidelity warnings": Kind(
        "reasons to doubt the numbers of the run", Limit.NUMBER, scoped=False
    ),
}


class ExpectationError(ValueError):
    """A mistake in a line, with the position and width of the wrong word."""

    def __init__(self, message: str, hint: str, start: int, width: int) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
        self.start, self.width = start, max(1, width)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a line, and its position."""

    text: str
    start: int


def parse(line: str) -> Expectation:
    """Parse a line; ExpectationError with the position of the first wrong word."""
    one = _Line(line).read()
    return replace(one, text=written(one))


def written(one: Expectation) -> str:
    """The standard form of the line."""
    scopes = [] if one.levels is None else [f"level {_written_levels(*one.levels)}"]
    for word, name in (("topic", one.topic), ("node", one.node), ("from", one.origin)):
        scopes += [] if name is None else [f"{word} {name}"]
    statistic = [] if one.statistic is None else [one.statistic]
    return " ".join([*scopes, one.quantity, *statistic, one.relation, _written_limit(one)])


def _written_levels(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{'' if low == LEVELS[0] else low}..{'' if high == LEVELS[1] and low != LEVELS[0] else high}"


def _written_limit(one: Expectation) -> str:
    if KINDS[one.quantity].limit is Limit.TIME:
        return DURATION.write(one.limit)
    if one.share:
        return SHARE.write(one.limit)
    text = format(Decimal(repr(one.limit)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class _Line:
    """A parser of one line, word by word."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._words = [Word(found[0], found.start()) for found in _TOKEN.finditer(line)]
        self._at = 0

    def read(self) -> Expectation:
        levels: tuple[int, int] | None = None
        names: dict[str, str] = {}
        first = self._words[0] if self._words else None
        while (scope := self._peek()) and scope.text in SCOPES:
            self._at += 1
            if scope.text in names or (scope.text == "level" and levels is not None):
                raise self._wrong(scope, f"{quoted(scope.text)} appears twice", "leave one out")
            named = self._word(f"`{scope.text}` needs a name after it", _SCOPE_EXAMPLES[scope.text])
            if scope.text == "level":
                levels = self._levels(named)
            else:
                names[scope.text] = named.text
        quantity, kind = self._quantity()
        if not kind.scoped and (levels or names) and first is not None:
            raise self._wrong(
                first,
                f"`{quantity}` is of the whole run, not of one {first.text}",
                f"leave `{first.text}` and its name out",
            )
        statistic = self._statistic(quantity) if kind.statistics else None
        relation = self._relation(quantity)
        limit, share = self._limit(quantity, kind)
        if (extra := self._peek()) is not None:
            raise self._wrong(
                extra, f"{quoted(extra.text)} is unexpected", "a line ends with its limit"
            )
        return Expectation(
            quantity=quantity,
            statistic=statistic,
            relation=relation,
            limit=limit,
            share=share,
            levels=levels,
            topic=names.get("topic"),
            node=names.get("node"),
            origin=names.get("from"),
        )

    def _peek(self) -> Word | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _word(self, missing: str, hint: str) -> Word:
        word = self._peek()
        if word is None:
            raise ExpectationError(missing, hint, len(self._line.rstrip()), 1)
        self._at += 1
        return word

    def _wrong(self, word: Word, message: str, hint: str) -> ExpectationError:
        return ExpectationError(message, hint, word.start, len(word.text))

    def _levels(self, word: Word) -> tuple[int, int]:
        found = _LEVELS.match(word.text)
        hint = "levels go from 1 to 5: level 5, level 4.., level 2..4"
        if found is None or not (found[1] or found[3]) or (found[3] and not found[2]):
            raise self._wrong(word, f"{quoted(word.text)} is no level", hint)
        low = int(found[1]) if found[1] else LEVELS[0]
        high = int(found[3]) if found[3] else (LEVELS[1] if found[2] else low)
        if not LEVELS[0] <= low <= high <= LEVELS[1]:
            raise self._wrong(word, f"{quoted(word.text)} are no levels", hint)
        return low, high

    def _quantity(self) -> tuple[str, Kind]:
        word = self._word("what is expected?", f"one of {listing(KINDS)}")
        for name in sorted(KINDS, key=len, reverse=True):
            parts = name.split()
            texts = [one.text for one in self._words[self._at - 1 : self._at - 1 + len(parts)]]
            if texts == parts:
                self._at += len(parts) - 1
                return name, KINDS[name]
        known = [*KINDS, *SCOPES]
        starting = [name for name in KINDS if name.split()[0] == word.text]
        hint = f"did you mean '{starting[0]}'?" if starting else did_you_mean(word.text, known)
        raise self._wrong(word, f"there is no quantity {quoted(word.text)}", hint)

    def _statistic(self, quantity: str) -> str:
        hint = f"write it like {quantity} p99, {quantity} mean or {quantity} max"
        word = self._word(f"which statistic of `{quantity}`?", hint)
        if word.text in PLAIN_STATISTICS or _PERCENTILE.match(word.text):
            return word.text
        if word.text[0] in "<>=!":
            raise self._wrong(word, f"which statistic of `{quantity}`?", hint)
        raise self._wrong(word, f"{quoted(word.text)} is no statistic", hint)

    def _relation(self, quantity: str) -> str:
        hint = f"one of {listing(RELATIONS)}"
        word = self._word(f"how should `{quantity}` be?", hint)
        if word.text not in RELATIONS:
            better = "write ==" if word.text == "=" else hint
            raise self._wrong(word, f"{quoted(word.text)} does not compare", better)
        return word.text

    def _limit(self, quantity: str, kind: Kind) -> tuple[float, bool]:
        """The number, and whether it is a share."""
        example = {"time": "2s", "number": "50", "count": "0 or 1%"}[kind.limit]
        word = self._word("compared with what?", f"write a limit after it, such as {example}")
        following = self._peek()
        text = word.text
        if following is not None and _NUMBER.match(text) and following.text in DURATION.units:
            self._at += 1
            text += following.text
        try:
            if kind.limit is Limit.TIME:
                return parse_duration(text), False
            if kind.limit is Limit.COUNT and text.endswith("%"):
                return parse_share(text), True
        except UnitError as error:
            raise self._wrong(word, str(error), error.hint) from None
        if not _NUMBER.match(text):
            raise self._wrong(word, f"{quoted(text)} is no number", f"write it like {example}")
        return float(text), False


_SCOPE_EXAMPLES = {
    "level": "as in level 5 or level 4..",
    "topic": "as in topic alerts",
    "node": "a subscriber, or a group of them",
    "from": "a sensor, or a group of them",
}


def distinct(lines: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """The expectations without duplicates, in their order."""
    return tuple(dict.fromkeys(lines))
