"""How far the load of a Publish/Subscribe map can be levelled (Ogawa, Nakamura, Saito: the simulated experiment)."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from testbed.converged.zorder_areas import Areas, Give, Numbers, Workload, draw

# Levelling of load on a Publish/Subscribe map: nodes with little to do leave, and help nodes with much.


class Movers(StrEnum):
    """The nodes that move when a sample has several light and heavy nodes."""

    ONE = "one"  # the lightest, to the heaviest
    ALL = "all"  # all light ones, the lightest first, to the heavy ones in turn, the heaviest first


class EOf(StrEnum):
    """What e is measured in."""

    MEAN = "mean"  # a share of the sample's mean
    LOAD = "load"  # events x subscriptions


@dataclass(frozen=True, slots=True)
class Rule:
    """When is a node heavy or light? The text leaves open what e is, and whether several of a sample move."""

    k: int = 5  # nodes in a sample
    e: float = 0.5  # how far from the sample's mean
    e_of: str = EOf.MEAN
    give: str = Give.BOTH
    movers: str = Movers.ONE


def level(areas: Areas, rule: Rule, rounds: int, random: np.random.Generator) -> Iterator[int]:
    """Level round by round; how many nodes have moved in each."""
    for _ in range(rounds):
        sample = random.choice(len(areas.starts), rule.k, replace=False)
        yield sum(
            areas.move(light, heavy, Give(rule.give)) for light, heavy in pairs(areas, sample, rule)
        )


def pairs(areas: Areas, sample: Numbers, rule: Rule) -> list[tuple[int, int]]:
    """Of the nodes at these places: those to move (by name), and their new neighbours."""
    held = np.bitwise_count(areas.held[sample]).sum(axis=1, dtype=np.int64)
    loads = areas.events[sample] * held
    mean = loads.mean()
    far = rule.e * mean if EOf(rule.e_of) is EOf.MEAN else rule.e
    order = np.argsort(loads, kind="stable")
    light = [int(areas.names[sample[n]]) for n in order if loads[n] < mean - far]
    heavy = [int(areas.names[sample[n]]) for n in order[::-1] if loads[n] > mean + far]
    if not light or not heavy:
        return []
    if Movers(rule.movers) is Movers.ONE:
        return [(light[0], heavy[0])]
    return [(each, heavy[turn % len(heavy)]) for turn, each in enumerate(light)]


Row = dict[str, Any]
GROUP = 10  # nodes in id order whose loads make one group
BIN = 50  # of the histogram
LAST_BIN = 1_000  # this and all above
ROUNDS_PER_SAMPLE = 50  # rounds
BEFORE, AFTER = "before", "after"


@dataclass(slots=True)
class Levelled:
    """The rows of one trial, by table."""

    totals: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    histogram: list[Row] = field(default_factory=list)
    moments: list[Row] = field(default_factory=list)


def measure_levelling(
    seed: int, trial: int = 0, nodes: int = 1_000, rounds: int = 1_000, **readings: Any
) -> Levelled:
    """One trial: equal areas, then `rounds` samples of k nodes each. What chance decides follows from seed and trial.

    `readings` are those of `Workload` and `Rule`: the text, and where it leaves something open. Trials of one number
    have the same events and subscriptions if these are drawn alike, whatever the rule.

    `totals`: a row `before` and one `after`, with all readings, `moves` so far, and what `summary` gives. `moments`:
    the same every 50 rounds. `nodes`: before and after, for each group of 10 nodes in id order, `load` (mean) and
    `largest`. `histogram`: before and after, how many `nodes_in` have a load from `from_load` on, in steps of 50, the
    last without an end.
    """
    of_rule = {name: readings[name] for name in readings if name in Rule.__dataclass_fields__}
    rule = Rule(**of_rule)
    workload = Workload(**{name: readings[name] for name in readings if name not in of_rule})
    drawing, sampling = (
        np.random.default_rng(each) for each in np.random.SeedSequence([seed, trial]).spawn(2)
    )
    areas = Areas.equal(draw(workload, drawing), nodes)
    head = {"trial": trial, "nodes": nodes, "rounds": rounds, **asdict(workload), **asdict(rule)}
    found = Levelled()
    moves = 0
    _add_rows(found, head, BEFORE, areas, moves)
    found.moments.append({**head, "round": 0, "moves": 0, **summary(areas)})
    for done, moved in enumerate(level(areas, rule, rounds, sampling), start=1):
        moves += moved
        if done % ROUNDS_PER_SAMPLE == 0:
            found.moments.append({**head, "round": done, "moves": moves, **summary(areas)})
    _add_rows(found, head, AFTER, areas, moves)
    return found


def summary(areas: Areas) -> Row:
    """Of all loads: `load` (mean), `largest`, `fairness` (Jain's index: 1 if all are alike), shares of the nodes with a
    load `to_50` and `above_250`, `from_500` (nodes); `copies`: subscriptions that nodes have, in all.
    """
    loads = areas.loads
    return {
        "load": float(loads.mean()),
        "largest": int(loads.max()),
        "fairness": fairness(loads),
        "to_50": float((loads <= 50).mean()),
        "above_250": float((loads > 250).mean()),
        "from_500": int((loads >= 500).sum()),
        "copies": int(areas.subscriptions.sum()),
    }


def fairness(loads: Numbers) -> float:
    """Jain's index."""
    squares = float((loads.astype(np.float64) ** 2).sum())
    return float(loads.sum()) ** 2 / (len(loads) * squares) if squares else 1.0


def _add_rows(found: Levelled, head: Row, when: str, areas: Areas, moves: int) -> None:
    loads = areas.loads
    found.totals.append({**head, "when": when, "moves": moves, **summary(areas)})
    here = {"give": head["give"], "trial": head["trial"], "when": when}
    for first in range(0, len(loads), GROUP):
        group = loads[first : first + GROUP]
        group_row = {"from_node": first, "load": float(group.mean()), "largest": int(group.max())}
        found.nodes.append({**here, **group_row})
    bins = np.bincount(np.minimum(loads // BIN, LAST_BIN // BIN), minlength=LAST_BIN // BIN + 1)
    for place, count in enumerate(bins.tolist()):
        found.histogram.append({**here, "from_load": place * BIN, "nodes_in": count})
