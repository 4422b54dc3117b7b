"""Who is down, cut or changed, and by which stroke: the end of one stroke leaves alone what another has done since."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Changes = Mapping[str, Any]  # details of a `link` action


class Broken:
    """Nodes that are down, or whose links are cut: each by one stroke."""

    def __init__(self) -> None:
        self._by: dict[str, int] = {}

    def holds(self, name: str, by: int | None = None) -> bool:
        """Whether it is so; `by`: because of this stroke."""
        return name in self._by if by is None else self._by.get(name) == by

    def add(self, names: Iterable[str], by: int) -> None:
        """From now on they are."""
        self._by.update(dict.fromkeys(names, by))

    def mend(self, names: Iterable[str]) -> None:
        """From now on they are not."""
        for name in names:
            self._by.pop(name, None)


class Changed:
    """Nodes whose links have other values: each by one stroke or several, of which the later goes first."""

    def __init__(self) -> None:
        self._by: dict[str, dict[int, Changes]] = {}
        self._lasting: set[int] = set()  # strokes that nothing ends

    def holds(self, name: str, by: int | None = None) -> bool:
        """Whether it is so; `by`: also because of this stroke."""
        return name in self._by if by is None else by in self._by.get(name, ())

    def add(self, names: Iterable[str], by: int, changes: Changes, *, lasting: bool) -> None:
        """They get these values as well; the same ones again, of what nothing ends, are kept once."""
        if lasting:
            self._lasting.add(by)
        for name in names:
            held = self._by.get(name, {}).items()
            kept = {
                one: each
                for one, each in held
                if not (lasting and one in self._lasting and each == changes)
            }
            self._by[name] = {**kept, by: changes}

    def mend(self, names: Iterable[str], by: int | None = None) -> None:
        """They are as the file says; `by`: but for what other strokes have made of them."""
        for name in names:
            held = self._by.pop(name, {})
            if rest := {one: each for one, each in held.items() if by is not None and one != by}:
                self._by[name] = rest

    def left(self, names: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Changes]]:
        """What still holds for these, in the order in which it came."""
        found: dict[int, list[str]] = {}
        for name in names:
            for one in self._by.get(name, ()):
                found.setdefault(one, []).append(name)
        for one in sorted(found):
            yield tuple(found[one]), self._by[found[one][0]][one]
