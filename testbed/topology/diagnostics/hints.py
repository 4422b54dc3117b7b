"""Hints in messages: similar names, and lists of names."""

import difflib
from collections.abc import Iterable
from itertools import islice

_MOST_LISTED = 12
_MOST_COMPARED = 300  # comparisons take time, and thousands of names differ only in numbers


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A hint with the most similar name, or, without one, with the known names."""
    names = list(dict.fromkeys(known))
    if not names:
        return ""
    near = nearest(wrong, names)
    return f"did you mean '{near}'?" if near else f"known here: {listing(names)}"


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """The most similar name, if any is similar."""
    short = wrong[:60]  # no name is longer, and comparisons take time
    names = list(known)
    alike = islice((name for name in names if name[:1] == wrong[:1]), _MOST_COMPARED)
    likely = dict.fromkeys((*alike, *names[:_MOST_COMPARED]))
    by_folded = {name.casefold(): name for name in likely}
    near = difflib.get_close_matches(short.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[near[0]] if near else None


def listing(names: Iterable[str]) -> str:
    """Names with commas; a long list is cut."""
    every = list(names)
    shown = ", ".join(every[:_MOST_LISTED])
    return shown if len(every) <= _MOST_LISTED else f"{shown}, ... ({len(every)} in all)"


def quoted(value: object, most: int = 40) -> str:
    """A value of the file in a message: long ones are cut, control characters made visible."""
    text = str(value)
    shown = "".join(visible(character) for character in text[:most])
    return f"'{shown}'" if len(text) <= most else f"'{shown}...'"


def visible(character: str) -> str:
    """The character, or a replacement if it could control the terminal."""
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"


def with_article(kind: str) -> str:
    """A kind of node in a sentence: a sensor, an external node."""
    return f"{'an' if kind == 'external' else 'a'} {_noun(kind)}"


def counted(number: int, kind: str) -> str:
    """A number of nodes of a kind: 1 sensor, 5 external nodes."""
    return f"{number} {_noun(kind)}{'' if number == 1 else 's'}"


def _noun(kind: str) -> str:
    return "external node" if kind == "external" else kind
