"""Groups runs into trials of one experiment: the same lab, with another seed or at another time. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.inputs.manifest import method, method_of_each
from analysis.inputs.results import read_summary
from analysis.inputs.run_folder import Run
from analysis.metrics.delay import by_method, by_receiver
from analysis.metrics.percentiles import (
    NOT_WITHIN,
    NOTHING,
    OBSERVED,
    Delays,
    of_table,
    summary_of,
    together,
)
from analysis.stats.bootstrap import intervals

OWN = ("name", "seed", "overrides")  # of a lab; the rest of its topology defines the experiment
# The columns of the run, before a table's own columns.
OF_RUN = ("run", "lab", "backend", "overlay", "delivery", "seed")


class Trial(NamedTuple):
    """One run of an experiment."""

    run: Run
    setup: str  # the same for all trials of an experiment
    number: int  # from 1, in the order of the seeds


def setup_of(run: Run) -> str:
    """A digest of everything that is equal in all trials: topology, methods, scenario, backend."""
    topology = {key: value for key, value in run.manifest["topology"].items() if key not in OWN}
    scenario = topology.get("scenario", {})  # expectations do not change the experiment
    topology["scenario"] = {key: value for key, value in scenario.items() if key != "expect"}
    text = json.dumps([topology, run.backend], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def trials_of(runs: Sequence[Run]) -> list[Trial]:
    """The trials in the order of the runs, numbered within their experiment: by seed, then by time of creation."""
    made = sorted(runs, key=_seed_and_time)
    counts: dict[str, int] = {}
    found: dict[str, Trial] = {}
    for run in made:
        setup = setup_of(run)
        counts[setup] = counts.get(setup, 0) + 1
        found[run.name] = Trial(run, setup, counts[setup])
    return [found[run.name] for run in runs]


def _seed_and_time(run: Run) -> tuple[int, int, str]:
    created_ns = int(run.manifest.get("created_ns") or 0)
    return int(run.manifest["topology"]["seed"]), created_ns, run.name


def of_run(run: Run) -> dict[str, Any]:
    """The columns that identify a run."""
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


# Experiments of several runs: by level, each statistic with its interval.


FILE = "intervals.parquet"
SAME = ("backend", "overlay", "delivery")  # of all trials of an experiment


def read_delays(run: Run) -> dict[int, Delays]:
    """Level -> the delays of its expected deliveries."""
    path = run.metrics / "deliveries.parquet"
    written = pq.ParquetDataset(path).schema.names
    wanted = ("priority", "delay_s", OBSERVED, "published_ns")
    table = pq.read_table(path, columns=[name for name in wanted if name in written])
    levels = table["priority"].to_numpy()
    delays = of_table(table, run.played[1] if run.played else None)
    return {
        level: Delays(*(column[levels == level] for column in delays))
        for level in sorted(set(levels.tolist()), reverse=True)
    }


def summary_of_run(run: Run) -> dict[str, Any]:
    """The summary of an analysed run.

    Earlier versions summarized only the delays of deliveries that were made: these are computed again.
    """
    summary = read_summary(run)
    levels, known = summary.get("by_priority", {}), summary.get("delay_s", {})
    if all(NOT_WITHIN in known.get(level, ()) for level in levels):
        return summary
    found = read_delays(run)
    delays = {
        level: {
            "n": count["delivered"],
            "expected": count["expected"],
            **summary_of(found.get(int(level), NOTHING)),
        }
        for level, count in levels.items()
    }
    return {**summary, "delay_s": delays, **_by_group(run, summary)}


def _by_group(run: Run, summary: Mapping[str, Any]) -> dict[str, Any]:
    """`by_receiver` and `by_method`, if the summary has them."""
    if "by_receiver" not in summary:
        return {}
    deliveries = pq.read_table(run.metrics / "deliveries.parquet")
    if OBSERVED not in deliveries.column_names and run.played:
        published_s = pc.divide(deliveries["published_ns"].cast(pa.float64()), 1e9)
        observed_s = pc.subtract(run.played[1] / 1e9, published_s)
        deliveries = deliveries.append_column(OBSERVED, observed_s)
    methods = method_of_each(run.manifest["topology"])
    return {"by_receiver": by_receiver(deliveries), "by_method": by_method(deliveries, methods)}


def experiments(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """One for each setup, in the order of their first runs; setups of a single run have no intervals."""
    by_setup: dict[str, list[Trial]] = {}
    for trial in trials:
        by_setup.setdefault(trial.setup, []).append(trial)
    return [_experiment(setup, of_it) for setup, of_it in by_setup.items() if len(of_it) > 1]


def _experiment(setup: str, trials: Sequence[Trial]) -> dict[str, Any]:
    about = of_run(trials[0].run)
    return {
        "setup": setup,
        **{name: about[name] for name in SAME},
        "runs": [trial.run.name for trial in trials],
        "seeds": [of_run(trial.run)["seed"] for trial in trials],
        "levels": levels_of([trial.run for trial in trials]),
    }


def levels_of(trials: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Level -> expected deliveries in all trials, and the statistics of the delay with their intervals.

    `not_within_s`: the bound of a percentile that was not reached.
    """
    runs = [read_delays(run) for run in trials]
    levels = sorted({level for run in runs for level in run}, reverse=True)
    return {str(level): _of_level([run.get(level, NOTHING) for run in runs]) for level in levels}


def _of_level(runs: Sequence[Delays]) -> dict[str, Any]:
    bounds = summary_of(together(runs))[NOT_WITHIN]
    return {
        "expected": sum(len(run.s) for run in runs),
        **{
            name: {**found._asdict(), NOT_WITHIN: bounds.get(name)}
            for name, found in intervals([run.s for run in runs]).items()
        },
    }


def write_intervals(folder: Path, found: Sequence[dict[str, Any]]) -> None:
    """Write a table with a row for each experiment, level and statistic."""
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("setup", *SAME)),
            ("trials", pa.int32()),
            ("priority", pa.int32()),
            ("expected", pa.int64()),
            ("statistic", pa.string()),
            *((name, pa.float64()) for name in ("value", "low", "high", NOT_WITHIN)),
        ]
    )
    rows = [
        {
            **{name: one[name] for name in ("setup", *SAME)},
            "trials": len(one["runs"]),
            "priority": int(level),
            "expected": values["expected"],
            "statistic": name,
            **values[name],
        }
        for one in found
        for level, values in one["levels"].items()
        for name in values
        if name != "expected"
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / FILE, compression="zstd")
