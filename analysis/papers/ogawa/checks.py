"""What must be true of a reproduction of Ogawa's map, each as one sentence with the numbers behind it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.papers.judging import NOT_MEASURED, all_hold, check
from analysis.papers.ogawa.figures import AFTER, BEFORE, BOTH, LEFT, READING, differs_in

Row = Mapping[str, Any]
FEW = 0.05  # of the nodes
MOST_TRIALS = 0.9
FAIRER = 2.0
ALIKE = 0.1


def checks(totals: Sequence[Row], usual: Row) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured here), and the numbers."""
    found = {
        (row["give"], row["when"]): row for row in totals if differs_in(row, usual) <= {"give"}
    }
    return [
        _share(
            found.get((BOTH, BEFORE)),
            "to_50",
            "before, more than half of the nodes have a load of 0 to 50",
            lambda share: share > 0.5,
        ),
        _share(
            found.get((BOTH, BEFORE)),
            "above_250",
            f"before, very few have more than 250 (at most {FEW:.0%})",
            lambda share: share <= FEW,
        ),
        *(_none_from_500(found.get((give, AFTER)), give) for give in (BOTH, LEFT)),
        _fairer(found),
        _as_well(found),
        _every_reading(totals),
    ]


def _share(row: Row | None, value: str, name: str, holds: Any) -> dict[str, Any]:
    if row is None:
        return check(name, None, NOT_MEASURED)
    return check(name, holds(row[value]["mean"]), f"{row[value]['mean']:.1%} of the nodes")


def _none_from_500(row: Row | None, give: str) -> dict[str, Any]:
    name = (
        f"after, no node has 500 or more, in at least {MOST_TRIALS:.0%} of the trials (give {give})"
    )
    if row is None:
        return check(name, None, NOT_MEASURED)
    share = row["none_from_500"]["mean"]
    told = f"{share:.0%} of {row['none_from_500']['trials']} trials; the largest is {row['largest']['mean']:,.0f}"
    return check(name, share >= MOST_TRIALS, f"{told} in the mean")


def _fairer(found: Mapping[tuple[str, str], Row]) -> dict[str, Any]:
    name = f"levelling at least doubles the fairness of load ({FAIRER:g} x Jain's index)"
    values = [
        (after["fairness"]["mean"] / found[give, BEFORE]["fairness"]["mean"], f"give {give}")
        for (give, when), after in found.items()
        if when == AFTER and (give, BEFORE) in found
    ]
    return all_hold(name, values, lambda value: value >= FAIRER, "smallest")


def _as_well(found: Mapping[tuple[str, str], Row]) -> dict[str, Any]:
    """By fairness, to which all nodes count: how large the largest load is hangs on whether few nodes were sampled."""
    name = f"who gives all to the left neighbour levels about as well (fairness at most {ALIKE:.0%} lower)"
    both, left = found.get((BOTH, AFTER)), found.get((LEFT, AFTER))
    if both is None or left is None:
        return check(name, None, NOT_MEASURED)
    fair = {give: row["fairness"]["mean"] for give, row in ((BOTH, both), (LEFT, left))}
    told = ", ".join(f"{give} {value:.3f}" for give, value in fair.items())
    largest = f"largest load {both['largest']['mean']:,.0f} and {left['largest']['mean']:,.0f}"
    return check(name, fair[LEFT] >= (1 - ALIKE) * fair[BOTH], f"{told}; {largest}")


def _every_reading(totals: Sequence[Row]) -> dict[str, Any]:
    name = "levelling makes the load fairer by each reading of the text"
    before = {_reading(row): row for row in totals if row["when"] == BEFORE}
    values = [
        (row["fairness"]["mean"] / before[place]["fairness"]["mean"], _told(row))
        for row in totals
        if row["when"] == AFTER and (place := _reading(row)) in before
    ]
    return all_hold(name, values, lambda value: value > 1, "smallest")


def _reading(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in READING)


def _told(row: Row) -> str:
    names = ("events_per_sensor", "scale", "side", "k", "e", "e_of", "give")
    return ", ".join(f"{name.replace('_', ' ')} {row[name]}" for name in names)
