"""Rows like those of the cells of a levelled Publish/Subscribe map, with known numbers: all checks hold."""

from collections.abc import Callable, Iterator
from typing import Any

from analysis.papers.ogawa.figures import READING, VALUES
from support.runs.overlay_rows import Row, averaged

USUAL: Row = {
    "nodes": 1_000,
    "rounds": 1_000,
    "bits": 10,
    "subscriptions": 100,
    "sensors": 100,
    "events_per_sensor": 40,
    "scale": 0.2,
    "side": 0.2,
    "events_at": "anywhere",
    "k": 5,
    "e": 0.5,
    "e_of": "mean",
    "give": "both",
    "movers": "one",
}
OTHERS: tuple[Row, ...] = (
    {"give": "left"},
    {"k": 2},
    {"k": 20},
    {"e": 0.0},
    {"e": 50.0, "e_of": "load"},
    {"events_per_sensor": 10},
    {"scale": 0.3},
    {"movers": "all"},
)
WHEN: dict[str, Row] = {
    "before": {"largest": 600, "fairness": 0.2, "to_50": 0.8, "above_250": 0.03, "from_500": 3},
    "after": {"largest": 300, "fairness": 0.7, "to_50": 0.6, "above_250": 0.01, "from_500": 0},
}
TRIALS = 3
Change = Callable[[Row], Row]


def total_rows() -> Iterator[Row]:
    """Rows before and after levelling, for each reading of the paper."""
    for differing in ({}, *OTHERS):
        for trial in range(TRIALS):
            for when, values in WHEN.items():
                moves = 700 if when == "after" else 0
                yield _row(trial, differing, {"when": when, "moves": moves}, values)


def moment_rows() -> Iterator[Row]:
    """Rows of the default reading, for both ways to give an area away."""
    for give in ("both", "left"):
        for trial in range(TRIALS):
            for at, values in zip((0, 500, 1_000), [*WHEN.values(), WHEN["after"]], strict=True):
                yield _row(trial, {"give": give}, {"round": at, "moves": at}, values)


def node_rows() -> Iterator[Row]:
    for here in _places():
        for first in range(0, 1_000, 10):
            yield {**here, "from_node": first, "load": first / 10, "largest": first}


def histogram_rows() -> Iterator[Row]:
    for here in _places():
        for first in range(0, 1_001, 50):
            yield {**here, "from_load": first, "nodes_in": 1_000 if first == 0 else 0}


def ogawa_means(changed: Change | None = None) -> tuple[list[Row], ...]:
    """Totals, nodes, histogram and moments as the figures need them; `changed` is applied to the totals."""
    totals = (_judged(changed(row) if changed else row) for row in total_rows())
    return (
        averaged(totals, (*READING, "when"), VALUES),
        averaged(node_rows(), ("give", "when", "from_node"), ("load", "largest")),
        averaged(histogram_rows(), ("give", "when", "from_load"), ("nodes_in",)),
        averaged(map(_judged, moment_rows()), (*READING, "round"), VALUES),
    )


def _judged(row: Row) -> Row:
    return {**row, "none_from_500": float(row["from_500"] == 0)}


def _row(trial: int, differing: Row, place: Row, values: Row) -> dict[str, Any]:
    others = {"load": 40.0 + trial, "copies": 7_000}
    return {"trial": trial, **USUAL, **differing, **place, **values, **others}


def _places() -> Iterator[Row]:
    for give in ("both", "left"):
        for trial in range(TRIALS):
            for when in WHEN:
                yield {"give": give, "trial": trial, "when": when}
