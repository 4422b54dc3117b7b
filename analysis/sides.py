"""One side of a comparison: a run, or several runs that are trials of the same; in the numbers that are compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.clock_errors import COLUMN
from analysis.experiments import delays_by_level
from analysis.facts import method
from analysis.findings import read_summary
from analysis.runfolder import Run

QUANTILES = ("p50", "p95", "p99", "max")
WHOLE = ("copies_per_publication", "control_bytes_per_s", "overhead")
COUNTS = ("expected", "delivered", "lost")
SAME = ("backend", "overlay")  # of trials, usually


@dataclass(frozen=True, slots=True)
class Side:
    """Runs, the first of which is named first, with what their analysis found."""

    runs: tuple[Run, ...]
    summaries: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        return ",".join(run.name for run in self.runs)


def side(*runs: Run) -> Side:
    """AnalysisError if one was not analysed."""
    return Side(runs, tuple(read_summary(run) for run in runs))


def figures(one: Side) -> dict[str, Any]:
    """A side in the numbers that are compared; null what is not known. Trials are put together."""
    each = [_of_run(*known) for known in zip(one.runs, one.summaries, strict=True)]
    found = each[0] if len(each) == 1 else _together(one, each)
    return {**found, "trials": len(each)}


def _of_run(run: Run, summary: dict[str, Any]) -> dict[str, Any]:
    messages, overhead = summary["messages"], summary["overhead"]
    overlay = summary.get("overlay") or {}
    payload = overhead["payload_bytes"]
    return {
        "run": run.name,
        "backend": run.backend,
        "overlay": method(run.manifest["topology"]["overlay"]),
        "expected": messages["expected_deliveries"],
        "delivered": messages["delivered"],
        "lost": messages["lost"],
        "handed_twice": messages.get("handed_twice"),
        "levels": {
            level: {
                **{name: count[name] for name in COUNTS},
                **{name: summary["delay_s"].get(level, {}).get(name) for name in QUANTILES},
                "hops_mean": summary["hops"].get(level, {}).get("mean"),
                "hops_max": summary["hops"].get(level, {}).get("max"),
                **_clock_error(summary, level),
            }
            for level, count in sorted(summary["by_priority"].items(), reverse=True)
        },
        "copies_per_publication": overlay.get("copies_per_publication"),
        "control_bytes_per_s": overlay.get("control", {}).get("bytes_per_s_per_broker"),
        "overhead": overhead["wire_bytes"] / payload if payload else None,
    }


def _clock_error(summary: dict[str, Any], level: str) -> dict[str, Any]:
    """`error_s`: how far each statistic of the delay may be off; nothing where all clocks are one."""
    told = summary.get(COLUMN, {}).get(level)
    if not told or not told["largest"]:
        return {}
    return {"error_s": {**told["of"], "largest": told["largest"]}}


def _together(one: Side, each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts summed, percentiles over all messages of all trials, other numbers as means over trials."""
    levels = sorted({level for run in each for level in run["levels"]}, reverse=True)
    delays = [delays_by_level(run) for run in one.runs]
    twice = [run["handed_twice"] for run in each]
    return {
        "run": one.name,
        **{name: " | ".join(dict.fromkeys(run[name] for run in each)) for name in SAME},
        **{name: sum(run[name] for run in each) for name in COUNTS},
        "handed_twice": None if None in twice else sum(twice),
        "levels": {
            level: _level_together(
                [run["levels"][level] for run in each if level in run["levels"]],
                np.concatenate([run[int(level)] for run in delays if int(level) in run]),
            )
            for level in levels
        },
        **{name: _mean([run[name] for run in each]) for name in WHOLE},
    }


def _level_together(told: Sequence[Mapping[str, Any]], delays: Any) -> dict[str, Any]:
    came = delays[np.isfinite(delays)]
    quantiles = np.percentile(came, (50, 95, 99, 100)).tolist() if len(came) else [None] * 4
    hops = [one for one in told if one["hops_mean"] is not None]
    delivered = sum(one["delivered"] for one in hops)
    crossed = sum(one["hops_mean"] * one["delivered"] for one in hops)
    return {
        **{name: sum(one[name] for one in told) for name in COUNTS},
        **dict(zip(QUANTILES, quantiles, strict=True)),
        "hops_mean": crossed / delivered if delivered else None,
        "hops_max": max((one["hops_max"] for one in hops), default=None),
        **_errors_together([one["error_s"] for one in told if "error_s" in one]),
    }


def _errors_together(told: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Of all trials together: no statistic is off by more than the least certain of the delays."""
    if not told:
        return {}
    largest = max(one["largest"] for one in told)
    return {"error_s": dict.fromkeys(told[0], largest)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
