"""The tests of two inventories side by side: which test of before is which one now."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames


@dataclass(frozen=True)
class Function:
    """A test function: the file it is in now by the table, the parameters of its ids, its hashes."""

    where: str
    mapped: str
    parameters: tuple[str, ...]
    exact: str  # with texts; the place itself where there is no definition
    shape: str  # without texts

    @property
    def file(self) -> str:
        return self.mapped.partition("::")[0]

    @property
    def name(self) -> str:
        return self.mapped.partition("::")[2]

    @property
    def ids(self) -> int:
        return len(self.parameters)


Pair = tuple[Function, Function]
Key = Callable[[Function], Hashable]


def tests(old: Any, new: Any, renames: Renames, found: Findings) -> None:
    """By the table, by name, by structure in the file, by order in the file, by structure in any file."""
    matching = Matching(functions(old, renames), functions(new, Renames()))
    named = matching.by(lambda each: each.mapped)
    moved = matching.by(lambda each: each.name, only_if_as_many=True)
    found.summarize("matched by name in another file", map(_arrow, moved))
    alike = [*_by_structure(matching, lambda each: each.file)]
    found.summarize("matched by structure in the same file", map(_arrow, alike))
    guessed = matching.by_order()
    found.guess(f"by order: {_arrow(pair)}" for pair in guessed)
    elsewhere = [*_by_structure(matching, lambda _each: "")]
    found.summarize("matched by structure in another file", map(_arrow, elsewhere))
    _compare_parameters([*named, *moved, *alike, *guessed, *elsewhere], found)
    found.lose(f"missing: {_counted(each)}" for each in matching.old)
    found.note(f"new: {_counted(each)}" for each in matching.new)


def functions(inventory: Any, renames: Renames) -> list[Function]:
    """In the order of the files, and in each file in the order of its definitions."""
    hashes = inventory.get("functions", {})
    parameters: dict[str, list[str]] = {}
    for identity in inventory["ids"]:
        where, _, rest = identity.partition("[")
        parameters.setdefault(where, []).append(rest.removesuffix("]"))
    found = [
        Function(where, renames.test(where), tuple(each), *hashes.get(where, (where, where)))
        for where, each in parameters.items()
    ]
    order = {where: index for index, where in enumerate(hashes)}
    return sorted(found, key=lambda each: (each.file, order.get(each.where, -1)))


class Matching:
    """The functions of both sides that have no partner yet."""

    def __init__(self, old: list[Function], new: list[Function]) -> None:
        self.old = old
        self.new = new

    def by(self, key: Key, only_if_as_many: bool = False) -> list[Pair]:
        """Pairs of equal keys, in order."""
        ours, theirs = _grouped(self.old, key), _grouped(self.new, key)
        return self._taken(
            pair
            for name, group in ours.items()
            if not only_if_as_many or len(group) == len(theirs.get(name, ()))
            for pair in zip(group, theirs.get(name, ()), strict=False)
        )

    def by_order(self) -> list[Pair]:
        """What is left of a file, if both sides have as many functions, none with fewer ids than before."""
        ours, theirs = (_grouped(each, lambda one: one.file) for each in (self.old, self.new))
        groups = [(group, theirs.get(file, [])) for file, group in ours.items()]
        return self._taken(
            pair
            for before, after in groups
            if len(before) == len(after)
            if all(new.ids >= old.ids for old, new in zip(before, after, strict=True))
            for pair in zip(before, after, strict=True)
        )

    def _taken(self, pairs: Iterable[Pair]) -> list[Pair]:
        found = list(pairs)
        ours, theirs = {old for old, _ in found}, {new for _, new in found}
        self.old = [each for each in self.old if each not in ours]
        self.new = [each for each in self.new if each not in theirs]
        return found


def _grouped(each: list[Function], key: Key) -> dict[Hashable, list[Function]]:
    groups: dict[Hashable, list[Function]] = {}
    for one in each:
        groups.setdefault(key(one), []).append(one)
    return groups


def _by_structure(matching: Matching, scope: Callable[[Function], str]) -> Iterable[Pair]:
    """Equal hashes within a scope: with texts before without, as many ids before others."""
    keys: tuple[Key, ...] = (
        lambda each: (scope(each), each.exact, each.ids),
        lambda each: (scope(each), each.shape, each.ids),
        lambda each: (scope(each), each.exact),
        lambda each: (scope(each), each.shape),
    )
    for key in keys:
        yield from matching.by(key)


def _compare_parameters(pairs: list[Pair], found: Findings) -> None:
    """Fewer ids of a function are a loss; other words in as many ids are not."""
    reworded = []
    for old, new in pairs:
        ours, theirs = Counter(old.parameters), Counter(new.parameters)
        gone, came = (", ".join(sorted(each)) for each in (ours - theirs, theirs - ours))
        if new.ids < old.ids:
            found.lose([f"{new.where}: {old.ids} ids -> {new.ids}; gone: {gone}"[:300]])
        elif new.ids > old.ids:
            found.note([f"{new.where}: {old.ids} ids -> {new.ids}; gone: {gone or 'none'}"[:300]])
        elif gone:
            reworded.append(f"{new.where}: {gone} -> {came}")
    found.summarize("functions have other words in their ids, and as many of them", reworded)


def _arrow(pair: Pair) -> str:
    old, new = pair
    return f"{old.where} -> {new.name if old.file == new.file else new.where}"


def _counted(each: Function) -> str:
    return each.where if each.ids == 1 else f"{each.where} ({each.ids} ids)"
