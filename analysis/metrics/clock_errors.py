"""The error of delays whose two ends were timed by different clocks, and its effect on statistics.

The error of a delay is the sum of the errors of both clocks. So a quantile of the true delays lies between the same
quantile of the delays minus their errors and that of the delays plus their errors.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis import formatting
from analysis.captures.clock import RATE, Clock
from analysis.formatting import NARROW, plain
from analysis.inputs.clocks import WHEN, Clocks
from analysis.metrics.percentiles import SHARES, percentile
from analysis.metrics.percentiles import of_table as delays_of_table

Array = npt.NDArray[Any]
COLUMN = "delay_error_s"


def of_deliveries(deliveries: pa.Table, clocks: Clocks) -> Array:
    """The error of each delay, nan if lost. Needs origin, published_ns, receiver, received_ns."""
    came = deliveries["received_ns"].is_valid().to_numpy()
    errors = np.where(came, 0.0, np.nan)
    for node, at in (("origin", "published_ns"), ("receiver", "received_ns")):
        names = deliveries[node].to_numpy()
        times = deliveries[at].fill_null(0).to_numpy()
        for name, clock in clocks.by_node.items():
            mine = came & (names == name)
            if mine.any():
                errors[mine] += clock.error_at(times[mine]) / 1e9
    return errors


def known(deliveries: pa.Table) -> bool:
    """Whether any of these delays has an error; earlier versions wrote none."""
    return COLUMN in deliveries.column_names and bool(pc.max(deliveries[COLUMN]).as_py())


def of_table(deliveries: pa.Table) -> Array:
    """The error of each delay; 0 if it has not come, and without errors."""
    if not known(deliveries):
        return np.zeros(deliveries.num_rows)
    return np.asarray(pc.fill_null(deliveries[COLUMN], 0.0).to_numpy())


def of_statistics(
    delays: Array, errors: Array, names: Sequence[str] = tuple(SHARES)
) -> dict[str, float]:
    """The errors of these quantiles, if they were reached. A missing delivery is missing by any clock."""
    found = {}
    for name in names:
        here, low, high = (
            percentile(values, SHARES[name])
            for values in (delays, delays - errors, delays + errors)
        )
        if here is not None and low is not None and high is not None:
            found[name] = max(here - low, high - here)
    return found


def by_level(deliveries: pa.Table) -> dict[str, dict[str, Any]]:
    """Level -> median and largest error of its delays, and of each quantile that was reached; the most urgent first."""
    delays, levels = delays_of_table(deliveries).s, deliveries["priority"].to_numpy()
    errors = pc.fill_null(deliveries[COLUMN], 0.0).to_numpy()
    found = {}
    for level in sorted(set(levels.tolist()), reverse=True):
        mine, came = levels == level, (levels == level) & np.isfinite(delays)
        if not came.any():
            continue
        found[str(level)] = {
            "median": float(np.median(errors[came])),
            "largest": float(errors[came].max()),
            "of": {
                **of_statistics(delays[mine], errors[mine]),
                "mean": float(errors[came].mean()),
            },
        }
    return found


def contradictions(deliveries: pa.Table) -> list[dict[str, Any]]:
    """Deliveries that arrived before their publication by more than their error, the worst first."""
    before = pc.field("delay_s") + pc.field(COLUMN) < 0
    found: list[dict[str, Any]] = deliveries.filter(before).to_pylist()
    return sorted(found, key=lambda row: row["delay_s"] + row[COLUMN])


def error_of(summary: Mapping[str, Any], level: str, name: str) -> float:
    """The error of this quantile of this level; 0 where all nodes use one clock, and if it was not reached."""
    errors = summary.get(COLUMN, {}).get(level)
    return float(errors["of"].get(name, 0.0)) if errors else 0.0


# The summary's `clocks`, and the reasons for doubt that follow from them.


URGENT = "5"  # the level whose delays must be accurate
MOST_SHARE = 0.1  # largest error, as a share of its median delay
POINTS = 500  # at which the error of a clock is evaluated, beside the measurements


def clocks_summary(clocks: Clocks, deliveries: pa.Table) -> dict[str, Any]:
    """The summary's `delay_error_s` and `clocks`; empty for a run with one clock.

    For each clock: its offset before, during and after the run, its drift, and the largest error of its times.
    """
    if not clocks.by_node and not clocks.damaged:
        return {}
    span = time_of(deliveries)
    return {
        COLUMN: by_level(deliveries),
        "clocks": {
            "rate_ppm": RATE * 1e6,
            "damaged_lines": list(clocks.damaged),
            "by_node": {node: _of(clock, span) for node, clock in clocks.by_node.items()},
        },
    }


def time_of(deliveries: pa.Table) -> tuple[int, int] | None:
    """From the first publication to the last arrival."""
    begin = pc.min(deliveries["published_ns"]).as_py()
    end = pc.max(deliveries["received_ns"]).as_py()
    return None if begin is None else (begin, begin if end is None else max(begin, end))


def _of(clock: Clock, span: tuple[int, int] | None) -> dict[str, Any]:
    drift = clock.drift
    return {
        "measurements": len(clock.measured),
        **{when: _measured(clock, when) for when in WHEN},
        "drift_ppm": drift[0] * 1e6 if drift else None,
        "drift_error_ppm": drift[1] * 1e6 if drift else None,
        "error_s": largest_error_s(clock, span),
        "was_set": clock.was_set,
    }


def _measured(clock: Clock, when: str) -> dict[str, float] | None:
    """The best measurement in this part of the run; null if there is none."""
    mine = [one for one in clock.measured if one.when == when]
    if not mine:
        return None
    best = min(mine, key=lambda one: (one.error_ns, one.t_ns))
    return {"offset_s": best.offset_ns / 1e9, "error_s": best.error_ns / 1e9}


def largest_error_s(clock: Clock, span: tuple[int, int] | None) -> float:
    """The largest error in this time; without one, in the time of the measurements."""
    begin, end = span or (int(clock.at_ns[0]), int(clock.at_ns[-1]))
    even = begin + np.linspace(0, end - begin, POINTS).astype(np.int64)
    inside = clock.at_ns[(clock.at_ns >= begin) & (clock.at_ns <= end)]
    return float(clock.error_at(np.concatenate((even, inside))).max()) / 1e9


def reasons(
    timing: Mapping[str, Any],
    boards: Sequence[str],
    delays: Mapping[str, Any],
    deliveries: pa.Table,
) -> list[str]:
    """Reasons to doubt the delays.

    `timing`: from `clocks_summary`. `boards`: nodes with their own clocks. `delays`: the summary's `delay_s`.
    """
    if not timing and not boards:
        return []
    known_clocks = timing.get("clocks", {})
    known = known_clocks.get("by_node", {})
    return [
        *_damaged(known_clocks.get("damaged_lines", ())),
        *_unmeasured([node for node in boards if node not in known]),
        *_set([node for node, clock in known.items() if clock["was_set"]]),
        *_too_uncertain(known, {"delay_s": delays, **timing}),
        *_impossible(contradictions(deliveries)),
    ]


def _damaged(lines: Iterable[int]) -> list[str]:
    numbers = list(lines)
    if not numbers:
        return []
    which = f"line {numbers[0]} is" if len(numbers) == 1 else f"{len(numbers)} lines are"
    return [f"Of clocks.jsonl, {which} damaged: what was measured there of a clock is not known."]


def _unmeasured(nodes: list[str]) -> list[str]:
    if not nodes:
        return []
    names = ", ".join(nodes)
    return [
        f"Nothing was measured of the clock of {names}: its times are used uncorrected, with an unknown "
        "error."
        if len(nodes) == 1
        else f"Nothing was measured of the clocks of {names}: their times are used uncorrected, with an "
        "unknown error."
    ]


def _set(nodes: list[str]) -> list[str]:
    if not nodes:
        return []
    return [
        f"The clock of {', '.join(nodes)} was set or pulled during the run: by more than {RATE * 1e6:.0f} ppm and the "
        "errors of the measurements explain. Delays around that moment are known only as well as it moved."
    ]


def _too_uncertain(known: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    medians = {
        level: delay["p50"]
        for level, delay in summary["delay_s"].items()
        if delay["p50"] is not None
    }
    level = URGENT if URGENT in medians else max(medians, default="")
    error = error_of(summary, level, "p50")
    if not level or not known or not error:
        return []
    median = medians[level]
    if error <= MOST_SHARE * median:
        return []
    worst = max(known, key=lambda node: known[node]["error_s"])
    return [
        f"The clocks of the boards are not known well enough for these delays: the median of level {level} is "
        f"{formatting.seconds_with_error(median, error)}, and an error of {plain(error)} is more than "
        f"{MOST_SHARE * 100:.0f}{NARROW}% of it. "
        f"The worst clock is that of {worst} (up to {plain(known[worst]['error_s'])} off); measure "
        "it more often, or over a faster way."
    ]


def _impossible(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    found = list(rows)
    if not found:
        return []
    worst = found[0]
    early = -worst["delay_s"]
    count = "1 delivery contradicts" if len(found) == 1 else f"{len(found)} deliveries contradict"
    return [
        f"{count} the clocks: by them, message {worst['id']} came to {worst['receiver']} {plain(early)} before "
        f"{worst['origin']} published it, and they are known to {plain(worst[COLUMN])}. One of the two "
        "clocks was not what was measured."
    ]


def boards_of(path: Path) -> list[str]:
    """The nodes on boards, by `boards.json`; none if the file is missing or damaged."""
    try:
        known = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return []
    return sorted(known) if isinstance(known, dict) else []
