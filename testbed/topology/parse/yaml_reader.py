"""Read YAML into plain values, with the place of each: a strict and bounded subset of YAML.

The reader uses the parser's events, not PyYAML's constructors, for three reasons: no tag can create an object; there
are no aliases that could multiply; and words keep their meaning. YAML 1.1 would read `on` as true, `1:30` as
90 and `010` as 8; here only true/false, null and plain decimal numbers are more than text.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from testbed.topology.diagnostics.hints import quoted
from testbed.topology.diagnostics.problems import ProblemList, TopologyErrors
from testbed.topology.diagnostics.source_map import Path, Place, SourceMap, split_lines

MAX_DEPTH = 20
MAX_VALUES = 60_000

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})\Z")
_DECIMAL = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]{0,17})?\.[0-9]{1,30}|(?:0|[1-9][0-9]{0,17})(?=[eE]))([eE][-+]?[0-9]{1,3})?\Z"
)
_NOT_TEXT = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # YAML 1.2, 5.1
_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same events, about ten times faster


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a file, and the places of its values."""

    data: Any
    source: SourceMap


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    path: Path
    items: dict[str, Any] | list[Any]
    key: str | None = None  # of a mapping: the key whose value comes next
    repeated: bool = False  # the key is a duplicate; its value is dropped


@dataclass(slots=True)
class _Builder:
    """Builds the data from events, without recursion, so nesting cannot exhaust the stack."""

    problems: ProblemList
    keys: dict[Path, Place]
    values: dict[Path, Place]
    open: list[_Open] = field(default_factory=list)
    root: Any = None

    def take(self, event: yaml.Event) -> None:
        """Process one event of the parser."""
        place = _place(event)
        if isinstance(event, yaml.AliasEvent):
            self._stop(
                place,
                "aliases (*name) are not allowed",
                "repeat the value, or use `defaults` or a group; a text that begins with * needs quotes",
            )
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._stop(
                place,
                "anchors (&name) are not allowed",
                "use `defaults`, a group or a link profile for repeated values",
            )
        if (tag := getattr(event, "tag", None)) is not None:
            self._stop(place, f"tags are not allowed: {quoted(tag)}", "remove the tag")
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, place)
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin({}, place)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin([], place)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.open.pop()

    def innermost(self) -> Place:
        """The start of the innermost incomplete mapping or list."""
        return self.values[self.open[-1].path] if self.open else Place(1, 1)

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> None:
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.items, dict) and top.key is None:
            self._key(top, top.items, event.value, place)
        else:
            plain = event.implicit[0]
            self._put(_meaning(event.value) if plain else event.value, place)

    def _key(self, top: _Open, items: dict[str, Any], key: str, place: Place) -> None:
        path = (*top.path, key)
        top.key = key
        top.repeated = key in items
        if top.repeated:
            first = self.keys[path].line
            self.problems.at(
                place,
                f"key {quoted(key)} appears twice; the first is on line {first}",
                "remove or rename one of them",
            )
        else:
            self.keys[path] = place

    def _begin(self, items: dict[str, Any] | list[Any], place: Place) -> None:
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.items, dict) and top.key is None:
            self._stop(place, "a key must be a plain word", "quote it if it begins with [ or {")
        if len(self.open) >= MAX_DEPTH:
            self._stop(
                place,
                f"nested more than {MAX_DEPTH} levels deep",
                "no topology needs that; look for a bracket that is never closed",
            )
        path = self._put(items, place)
        self.open.append(_Open(path, items))

    def _put(self, value: Any, place: Place) -> Path:
        """Store a value in the open container; returns its path."""
        if not self.open:
            self.root = value
            path: Path = ()
        else:
            top = self.open[-1]
            if isinstance(top.items, list):
                path = (*top.path, len(top.items))
                top.items.append(value)
            else:
                assert top.key is not None
                path = (*top.path, top.key)
                if top.repeated:
                    path = (*top.path, top.key, "\0repeated")  # the first one counts
                else:
                    top.items[top.key] = value
                top.key = None
        if len(self.values) >= MAX_VALUES:
            self._stop(place, f"more than {MAX_VALUES:,} values", "use groups with `count`")
        self.values[path] = place
        return path

    def _stop(self, place: Place, message: str, hint: str) -> None:
        self.problems.at(place, message, hint)
        raise TopologyErrors(self.problems.found)


def read(text: str, file: str) -> tuple[Document, ProblemList]:
    """The document and its problems so far (repeated keys); TopologyErrors if it is not YAML."""
    keys: dict[Path, Place] = {}
    values: dict[Path, Place] = {}
    source = SourceMap(file, split_lines(text), keys, values)
    problems = ProblemList(source)
    if strange := _NOT_TEXT.search(text):
        before = split_lines(text[: strange.start()])
        place = Place(len(before), len(before[-1]) + 1)
        problems.at(place, f"a control character (U+{ord(strange.group()):04X})", "remove it")
        raise TopologyErrors(problems.found)
    builder = _Builder(problems, keys, values)
    documents = 0
    for event in _events(text, builder):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                problems.at(
                    _place(event),
                    "a second document begins here",
                    "one file holds one topology: remove the line `---`",
                )
                raise TopologyErrors(problems.found)
        builder.take(event)
    return Document(builder.root, source), problems


def _events(text: str, builder: _Builder) -> Iterator[yaml.Event]:
    """The parser's events; its errors become problems with a next step."""
    problems = builder.problems
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        marks = [
            mark
            for mark in (error.problem_mark, error.context_mark)
            if mark is not None and not _at_end(mark, problems.source.lines)
        ]
        # A part that is incomplete at the end of the file is reported where it begins.
        place = Place(marks[0].line + 1, marks[0].column + 1) if marks else builder.innermost()
        begin = error.context_mark if error.context_mark in marks else None
        hint = _syntax_hint(problems.source.text(place), error)
        problems.at(place, f"this is not YAML: {_reason(error, begin)}", hint)
        raise TopologyErrors(problems.found) from None


def _at_end(mark: yaml.Mark, lines: tuple[str, ...]) -> bool:
    """Whether only blanks follow."""
    rest = "".join(lines[mark.line : mark.line + 1])[mark.column :]
    return not any(line.strip() for line in (rest, *lines[mark.line + 1 :]))


def _reason(error: yaml.MarkedYAMLError, begin: yaml.Mark | None) -> str:
    context = error.context
    if context and begin is not None:
        context += f" that begins on line {begin.line + 1}"
    return ", ".join(part for part in (error.problem, context) if part)


def _syntax_hint(line: str, error: yaml.MarkedYAMLError) -> str:
    """The likeliest mistake in such a line."""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent:
        return "indent with spaces; YAML forbids tabs there"
    if "[*]" in line and ("{" in line or ("," in line and "[" in line.split("[*]", maxsplit=1)[0])):
        return 'inside { } or [ ] a selector needs quotes: from: "sensors[*]"'
    problem = error.problem or ""
    if "cannot start any token" in problem:
        return "quote a text that begins with a special character such as @ ` % or a tab"
    if "mapping values are not allowed" in problem:
        return "a text with a colon needs quotes; or check the indentation of this line"
    if "quoted scalar" in (error.context or ""):
        return "close the quotes"
    return "check the indentation, and that every bracket and quote is closed"


def _meaning(text: str) -> Any:
    """The value of an unquoted word."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        return int(text)
    if _DECIMAL.match(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def _place(event: yaml.Event) -> Place:
    start, end = event.start_mark, event.end_mark
    if start is None or end is None:
        return Place(1, 1)
    single_line = isinstance(event, yaml.ScalarEvent | yaml.AliasEvent) and start.line == end.line
    width = end.column - start.column if single_line else 1
    return Place(start.line + 1, start.column + 1, max(1, width))
