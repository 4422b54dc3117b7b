"""summary.json: the main numbers of a run, from its metrics. The keys are a contract with other programs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.inputs.clocks import NONE, Clocks
from analysis.inputs.manifest import method_of_each
from analysis.inputs.run_folder import Run
from analysis.metrics import clock_errors, link_utilization, load, overlay
from analysis.metrics.delay import by_method, by_receiver
from analysis.metrics.fidelity import Evidence, verdict
from analysis.metrics.percentiles import NOT_WITHIN, SHARES
from analysis.stats.expectations import judged

PARTS = ("queue", "transmission", "propagation", "retransmission")


def summarize(
    run: Run,
    metrics: Path,
    ignored: int = 0,
    seconds: float | None = None,
    load_unit_s: float = load.UNIT_S,
    deadlines: Mapping[int, float] | None = None,
    clocks: Clocks = NONE,
) -> dict[str, Any]:
    """Summarize the metrics in this folder; `ignored` publications do not count.

    `seconds`: duration over which load and control traffic are averaged. `deadlines`: level -> seconds.
    `clocks`: of nodes with their own clock.
    """

    def table(name: str) -> pa.Table:
        return pq.read_table(metrics / f"{name}.parquet")

    published, deliveries, links = table("publications"), table("deliveries"), table("links")
    levels = table("delay").sort_by([("priority", "descending")]).to_pylist()
    reached = [row for row in levels if row["delivered"]]
    crossed = pq.read_table(metrics / "hops.parquet", columns=["id"])["id"]
    delays = {str(row["priority"]): _delay(row) for row in levels}
    timing = clock_errors.clocks_summary(clocks, deliveries)
    boards = clock_errors.boards_of(run.boards)
    warnings = clock_errors.reasons(timing, boards, delays, deliveries)
    summary = {
        "run": run.name,
        "backend": run.backend,
        "emulator": run.emulator,
        "messages": {
            "published": published.num_rows,
            "expected_deliveries": sum(row["expected"] for row in levels),
            **{
                name: sum(row[name] for row in levels)
                for name in ("delivered", "lost", "duplicates")
            },
            "handed_twice": _handed(deliveries, more_than=1),
        },
        "delay_s": delays,
        "delay_parts_s": {
            str(row["priority"]): {name: _rounded(row[f"{name}_s"]) for name in PARTS}
            for row in reached
        },
        "hops": {
            str(row["priority"]): {"mean": row["hops_mean"], "max": row["hops_max"]}
            for row in reached
        },
        "overhead": {
            name: _sum(links, name)
            for name in (
                "payload_bytes",
                "wire_bytes",
                "packets",
                "retransmitted_packets",
                "retransmitted_payload",
            )
        },
        "fidelity": verdict(run, _evidence(published, deliveries, links, crossed, warnings)),
        "by_priority": {
            str(row["priority"]): {
                **{name: row[name] for name in ("expected", "delivered", "lost")},
                "handed": _handed(of_level := _of_level(deliveries, row["priority"]), more_than=0),
                "handed_twice": _handed(of_level, more_than=1),
                "out_of_order": row["out_of_order"],
                "deadline_s": (deadlines or {}).get(row["priority"]),
                "late": row["late"],
            }
            for row in levels
        },
        "by_receiver": by_receiver(deliveries),
        "by_method": by_method(deliveries, method_of_each(run.manifest["topology"])),
        "lost_reasons": _reasons(deliveries),
        "ignored_publications": ignored,
        "overlay": overlay.summary(run, metrics, deliveries, published.num_rows, seconds),
        "load": load.summary(run, metrics, load_unit_s, seconds),
        "link_utilization": link_utilization.summary(metrics, load_unit_s, seconds),
        **timing,
    }
    return {**summary, "expectations": judged(run, summary, deliveries)}


def _delay(row: dict[str, Any]) -> dict[str, Any]:
    """Of a level; a percentile that was not reached is null, and has a bound in `not_within_s`."""
    bounds = {name: row[f"{name}_{NOT_WITHIN}"] for name in SHARES}
    return {
        "n": row["delivered"],
        "expected": row["expected"],
        **{name: row[name] for name in SHARES},
        NOT_WITHIN: {name: bound for name, bound in bounds.items() if bound is not None},
    }


def _rounded(seconds: float | None) -> float | None:
    """Round to nanoseconds: the last digits of a mean depend on the order of summation."""
    return None if seconds is None else round(seconds, 9)


def _of_level(deliveries: pa.Table, priority: int) -> pa.Table:
    return deliveries.filter(pc.field("priority") == priority)


def _handed(deliveries: pa.Table, more_than: int) -> int:
    """Number of deliveries that the receiver's application logged more than this often."""
    return _sum_of(pc.greater(deliveries["handed"], more_than))


def _evidence(
    published: pa.Table,
    deliveries: pa.Table,
    links: pa.Table,
    crossed: pa.ChunkedArray,
    clock_warnings: list[str],
) -> Evidence:
    late = published["late_s"].drop_null().to_numpy()
    seen = crossed.unique()
    logged = pc.is_in(seen, value_set=published["id"].combine_chunks())
    unseen = pc.and_(pc.equal(deliveries["status"], "lost"), deliveries["confirmed"])
    return Evidence(
        late_p99_s=float(np.percentile(late, 99)) if len(late) else None,
        lost_tail_links=tuple(sorted(_by_link(links, "lost_tail_bytes"))),
        missing_bytes=_by_link(links, "missing_bytes"),
        compressed_messages=_sum(links, "compressed_messages"),
        unlogged_messages=len(seen) - _sum_of(logged),
        unseen_receptions=_sum_of(unseen),
        lost_deliveries=_sum_of(pc.equal(deliveries["status"], "lost")),
        least_delay_p99_s=least_p99_s(deliveries),
        orphan_pieces=_sum(links, "orphan_pieces"),
        compressed_links=tuple(sorted(_by_link(links, "compressed_streams"))),
        first_published_ns=pc.min(published["published_ns"]).as_py(),
        clock_warnings=tuple(clock_warnings),
    )


def least_p99_s(deliveries: pa.Table) -> float | None:
    """The smallest p99 of all levels, of the deliveries that were made: the machine must be good enough for these."""
    came = deliveries.filter(pc.field("delay_s").is_valid())
    of_levels = (
        came.filter(pc.field("priority") == level)["delay_s"]
        for level in pc.unique(came["priority"]).to_pylist()
    )
    return min((pc.quantile(delays, q=0.99)[0].as_py() for delays in of_levels), default=None)


def _reasons(deliveries: pa.Table) -> dict[str, int]:
    """Number of lost deliveries by reason, the most frequent first."""
    lost = deliveries.filter(pc.field("status") == "lost")
    counted = lost.group_by("reason").aggregate([([], "count_all")])
    order = [("count_all", "descending"), ("reason", "ascending")]
    return {row["reason"]: row["count_all"] for row in counted.sort_by(order).to_pylist()}


def _by_link(links: pa.Table, column: str) -> dict[str, int]:
    """link -> sum over both directions, if it is not 0."""
    sums: dict[str, int] = {}
    for link, size in zip(links["link"].to_pylist(), links[column].to_pylist(), strict=True):
        if size:
            sums[link] = sums.get(link, 0) + size
    return sums


def _sum(table: pa.Table, column: str) -> int:
    return _sum_of(table[column])


def _sum_of(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)
