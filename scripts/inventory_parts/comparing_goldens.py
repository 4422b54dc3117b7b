"""The golden files of two inventories side by side: what may differ in each kind of them."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from scripts.inventory_parts import documents
from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames

FOLDER = "tests/golden/"
PROBLEM = re.compile(
    r"(?P<place>\S+:\d+):(?P<column>\d+): .*"  # valley.yaml:12:28: a duration needs a unit
    r"\n +\d+ \| (?P<source>.*)\n +\| (?P<before> *)(?P<carets>\^+)(?:\n|$)"
)
TOKEN = re.compile(r"[\w-]+|\n *|[^\w\s-]")
COMMENT = re.compile(r"^ *#.*\n", re.MULTILINE)


def goldens(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    places = {name: _place(name, old, new, renames) for name in old["files"]}
    alike: list[str] = []
    for name, place in places.items():
        if place is None:
            found.lose([f"{name}: missing"])
        elif old["files"][name] != new["files"][place]:
            alike.extend(_compare(name, place, old, new, renames, found))
        elif place != _mapped(name, renames):
            found.note([f"{name}: now {place}"])
    found.summarize("files are the same under the table", alike)
    found.note(f"{name}: new" for name in new["files"] if name not in places.values())
    _byte_constants(old["bytes_in_tests"], new["bytes_in_tests"], renames, found)


def _mapped(name: str, renames: Renames) -> str:
    return renames.file(f"{FOLDER}{name}").removeprefix(FOLDER)


def _place(name: str, old: Any, new: Any, renames: Renames) -> str | None:
    """Where the file is now: where the table says, else the new file that has its content."""
    mapped = _mapped(name, renames)
    if mapped in new["files"]:
        return mapped
    added = {now: each for each, now in new["files"].items() if each not in old["files"]}
    return added.get(old["files"][name])


def _compare(
    name: str, place: str, old: Any, new: Any, renames: Renames, found: Findings
) -> Iterable[str]:
    """Report what differs in a file; give its name if it is nothing but what the table renames."""
    texts = [each.get("texts", {}).get(key) for each, key in ((old, name), (new, place))]
    if None in texts:
        found.lose([f"{place}: other content; an inventory has no texts"])
        return []
    known = renames.within("topology").with_words({PurePath(name).stem: PurePath(place).stem})
    before, after = map(str, texts)
    if place.startswith("nodes/"):
        _same_bytes(before, after, place, found)
    elif place.endswith(".json"):
        return _same_document(before, after, place, known, found)
    elif place.startswith("topology/") and place.endswith(".txt"):
        _same_problems(before, after, place, known, found)
    elif same_words(before, after, known):
        return [place]
    else:
        found.lose([f"{place}: other content"])
    return []


def _same_bytes(before: str, after: str, place: str, found: Findings) -> None:
    """Lines of a name and bytes in hex: only the names may differ."""
    ours, theirs = (
        [line.rpartition(" ") for line in text.splitlines()] for text in (before, after)
    )
    if [row[2] for row in ours] != [row[2] for row in theirs]:
        found.lose([f"{place}: other bytes"])
        return
    pairs = zip(ours, theirs, strict=True)
    renamed = [f"{a[0]} -> {b[0]}" for a, b in pairs if a[0] != b[0]]
    found.note([f"{place}: the same bytes, other names: {', '.join(renamed)}"])


def _same_document(
    before: str, after: str, place: str, renames: Renames, found: Findings
) -> list[str]:
    ours, theirs = json.loads(before), json.loads(after)
    each = list(documents.differences(documents.called_as_now(ours, theirs, renames), theirs))
    documents.report(found, (one._replace(text=f"{place}: {one.text}") for one in each))
    return [] if each else [place]


def same_words(before: str, after: str, renames: Renames) -> bool:
    """Whether texts of YAML are the same under the table, apart from lines of comments and spaces within a line."""
    ours, theirs = (TOKEN.findall(COMMENT.sub("", text)) for text in (before, after))
    return len(ours) == len(theirs) and all(
        b in {a, renames.word(a)} for a, b in zip(ours, theirs, strict=True)
    )


@dataclass(frozen=True)
class Problem:
    """A problem in a topology file, as a user sees it: where it is, and what is underlined."""

    place: str
    column: int
    source: str
    underlined: str
    words: str

    def is_at(self, other: "Problem", renames: Renames) -> bool:
        """Whether both are at the same place; columns move where the line has longer keys now."""
        if self.place != other.place:
            return False
        if self.source == other.source:
            return (self.column, self.underlined) == (other.column, other.underlined)
        return same_words(self.source, other.source, renames) and same_words(
            self.underlined, other.underlined, renames
        )


def problems(text: str) -> list[Problem]:
    """A problem each paragraph; one that has another form may not change at all."""
    return [_problem(each) for each in text.strip().split("\n\n")]


def _problem(text: str) -> Problem:
    found = PROBLEM.match(text)
    if found is None:
        return Problem(text, 0, "", "", text)
    before, end = len(found["before"]), len(found["before"] + found["carets"])
    underlined = found["source"][before:end]
    return Problem(found["place"], int(found["column"]), found["source"], underlined, text)


def _same_problems(before: str, after: str, place: str, renames: Renames, found: Findings) -> None:
    ours, theirs = problems(before), problems(after)
    if len(ours) != len(theirs):
        found.lose([f"{place}: {len(ours)} problems -> {len(theirs)}"])
        return
    pairs = list(zip(ours, theirs, strict=True))
    moved = [(a, b) for a, b in pairs if not a.is_at(b, renames)]
    found.lose(f"{place}: {a.place}:{a.column} -> {b.place}:{b.column}" for a, b in moved)
    other = sum(a.words != b.words for a, b in pairs)
    found.note([f"{place}: {other} of {len(pairs)} problems have other words"])


def _byte_constants(
    before: Mapping[str, int], after: Mapping[str, int], renames: Renames, found: Findings
) -> None:
    """Each as often as before; a request to the keeper may have the words of today."""
    words = documents.called_as_now(before, after, renames.within("request"))
    old, new = Counter(words), Counter(after)
    gone, came = old - new, new - old
    if gone:
        some = ", ".join(sorted(gone)[:5])
        found.lose([f"{gone.total()} byte constants of the tests are gone: {some}"])
    if came:
        found.note([f"{came.total()} byte constants of the tests are new"])
