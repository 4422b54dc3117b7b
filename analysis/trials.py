"""Which runs are repetitions of one experiment: the same lab, with another seed or at another time. Pure."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from analysis.facts import method
from analysis.runfolder import Run

OWN = ("name", "seed", "overrides")  # of a lab; all else of its topology is the experiment's
# What every row says of its run, before a table's own columns.
OF_RUN = ("run", "lab", "backend", "overlay", "delivery", "seed")


class Trial(NamedTuple):
    """One run of an experiment."""

    run: Run
    setup: str  # the same for all trials of an experiment
    number: int  # from 1, in the order in which they were made


def setup_of(run: Run) -> str:
    """Ten digits for all that does not differ between trials: topology, methods, scenario, backend."""
    topology = {key: value for key, value in run.manifest["topology"].items() if key not in OWN}
    scenario = topology.get("scenario", {})  # to expect more of it does not change it
    topology["scenario"] = {key: value for key, value in scenario.items() if key != "expect"}
    text = json.dumps([topology, run.backend], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def trials_of(runs: Sequence[Run]) -> list[Trial]:
    """In the order of the runs; each numbered among those of its experiment."""
    made = sorted(runs, key=lambda run: (int(run.manifest.get("created_ns") or 0), run.name))
    counts: dict[str, int] = {}
    found: dict[str, Trial] = {}
    for run in made:
        setup = setup_of(run)
        counts[setup] = counts.get(setup, 0) + 1
        found[run.name] = Trial(run, setup, counts[setup])
    return [found[run.name] for run in runs]


def of_run(run: Run) -> dict[str, Any]:
    """The columns that tell runs apart."""
    topology = run.manifest["topology"]
    values = (
        run.name,
        str(run.manifest["lab"]),
        run.backend,
        method(topology["overlay"]),
        method(topology["delivery"]),
        int(topology["seed"]),
    )
    return dict(zip(OF_RUN, values, strict=True))
