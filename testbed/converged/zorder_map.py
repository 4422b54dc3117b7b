"""How far the load of a Publish/Subscribe map can be levelled (Ogawa, Nakamura, Saito: the simulated experiment)."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from testbed.converged.zorder_areas import Areas
from testbed.converged.zorder_levelling import Rule, level
from testbed.converged.zorder_space import Numbers, Workload, draw

Row = dict[str, Any]
GROUP = 10  # nodes in id order whose loads are told together
BIN = 50  # of the histogram
LAST_BIN = 1_000  # this and all above
BETWEEN_LOOKS = 50  # rounds
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

    `readings` are those of `Workload` and `Rule`: what the text says, and what it leaves open. Trials of one number
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
    _tell(found, head, BEFORE, areas, moves)
    found.moments.append({**head, "round": 0, "moves": 0, **summary(areas)})
    for done, moved in enumerate(level(areas, rule, rounds, sampling), start=1):
        moves += moved
        if done % BETWEEN_LOOKS == 0:
            found.moments.append({**head, "round": done, "moves": moves, **summary(areas)})
    _tell(found, head, AFTER, areas, moves)
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


def _tell(found: Levelled, head: Row, when: str, areas: Areas, moves: int) -> None:
    loads = areas.loads
    found.totals.append({**head, "when": when, "moves": moves, **summary(areas)})
    here = {"give": head["give"], "trial": head["trial"], "when": when}
    for first in range(0, len(loads), GROUP):
        group = loads[first : first + GROUP]
        told = {"from_node": first, "load": float(group.mean()), "largest": int(group.max())}
        found.nodes.append({**here, **told})
    bins = np.bincount(np.minimum(loads // BIN, LAST_BIN // BIN), minlength=LAST_BIN // BIN + 1)
    for place, count in enumerate(bins.tolist()):
        found.histogram.append({**here, "from_load": place * BIN, "nodes_in": count})
