"""Two documents of JSON side by side, under a rename table."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames


class Difference(NamedTuple):
    """A place where two documents differ: what stood there is gone, something is new, or is another."""

    path: str
    kind: Literal["gone", "new", "other"]
    text: str

    @property
    def place(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def differences(old: Any, new: Any, path: str = "") -> Iterable[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            where = f"{path}/{key}"
            if key not in new:
                yield Difference(where, "gone", f"{where} is gone")
            elif key not in old:
                yield Difference(where, "new", f"{where} is new")
            else:
                yield from differences(old[key], new[key], where)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield Difference(path, "other", f"{path}: {old!r} -> {new!r}"[:300])


def report(found: Findings, each: Iterable[Difference]) -> None:
    for one in each:
        (found.note if one.kind == "new" else found.lose)([one.text])


def report_but(found: Findings, each: Iterable[Difference], places: Mapping[str, str]) -> None:
    """All differences; what is another at these places is only summarized, with the place's words."""
    every = list(each)
    apart = [one for one in every if one.kind == "other" and one.place in places]
    report(found, (one for one in every if one not in apart))
    for words in dict.fromkeys(places.values()):
        found.summarize(words, (one.text for one in apart if places[one.place] == words))


def called_as_now(old: Any, new: Any, renames: Renames) -> Any:
    """The old document, with the keys and texts of today where the table and the new document have them."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = {key: _key_now(key, old, new, renames) for key in old}
        return {now: called_as_now(old[key], new.get(now), renames) for key, now in names.items()}
    if isinstance(old, list) and isinstance(new, list):
        after = new + [None] * len(old)
        return [called_as_now(a, b, renames) for a, b in zip(old, after, strict=False)]
    if isinstance(old, str) and renames.phrase(old) == new:
        return new
    return old


def _key_now(key: str, old: Mapping[str, Any], new: Mapping[str, Any], renames: Renames) -> str:
    now = renames.phrase(key)
    both_stayed = now in old and key in new
    return now if now in new and not both_stayed else key
