"""The report's headline: outcome, delay and cost of the most urgent level; by method if there are several."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis import formatting
from analysis.formatting import NARROW, natural, percent, seconds
from analysis.metrics import clock_errors, percentiles
from analysis.metrics.delay import outcome
from analysis.metrics.percentiles import NOT_WITHIN
from analysis.report.sections.receivers import slowest
from nodes.protocol.wire import LEVEL_NAMES


def delay_with_error(summary: dict[str, Any], level: str, name: str) -> str:
    """A quantile of a level's delay, with the digits that its error allows; or that it was not reached."""
    error = clock_errors.error_of(summary, level, name)
    return formatting.percentile(summary["delay_s"][level], name, error)


def _came(summary: dict[str, Any], level: str, name: str) -> str:
    """By when this part of the expected deliveries came, or that it did not."""
    delay = summary["delay_s"][level]
    if delay[name] is not None:
        return f"arrived within {delay_with_error(summary, level, name)}"
    bound = (delay.get(NOT_WITHIN) or {}).get(name)
    return f"did not arrive within {formatting.at_least(bound)}" if bound else "did not arrive"


def headline_sentence(summary: dict[str, Any]) -> tuple[str, str]:
    """Outcome and delay of the most urgent level: one sentence, and good, bad or none."""
    levels = summary["by_priority"]
    if not levels:
        return "Nothing was published on a topic with subscribers.", "none"
    level = max(levels)
    expected, delivered = levels[level]["expected"], levels[level]["delivered"]
    what = f"level-{level} ({LEVEL_NAMES[int(level)]})"
    if not delivered:
        return f"None of the {expected} {what} deliveries arrived.", "bad"
    if delivered < expected:
        lost = f"{expected - delivered} of {expected} {what} deliveries had not arrived"
        return f"{lost} when the run ended: half {_came(summary, level, 'p50')}.", "bad"
    receiver = slowest(summary, level)
    where = f", at {receiver}," if receiver else ""
    half, last = (delay_with_error(summary, level, name) for name in ("p50", "max"))
    many = f"All {expected} {what} deliveries" if expected > 1 else f"The one {what} delivery"
    return f"{many} arrived: half within {half}, the slowest{where} after {last}.", "good"


def sentences(summary: dict[str, Any]) -> list[str]:
    """Further sentences: the tail, lateness, and the overhead of a byte of payload."""
    levels = summary["by_priority"]
    parts = []
    if levels:
        level = max(levels)
        if levels[level]["delivered"]:
            parts.append(f"99{NARROW}% of them {_came(summary, level, 'p99')}.")
        parts += _late(levels[level])
    overhead = summary["overhead"]
    if overhead["payload_bytes"]:
        cost = overhead["wire_bytes"] / overhead["payload_bytes"]
        parts.append(
            f"The links carried {cost:.2f} bytes for each byte of payload, over all levels."
        )
    return parts


def _late(count: dict[str, Any]) -> list[str]:
    deadline, late = count.get("deadline_s"), count.get("late")
    if deadline is None or late is None:
        return ["The level has no deadline."]
    if not count["delivered"]:
        return []
    if not late:
        return [f"None arrived after its deadline of {seconds(deadline)}."]
    share = percent(late / count["delivered"])
    return [f"{late} of those that arrived ({share}) missed their deadline of {seconds(deadline)}."]


def method_rows(
    deliveries: pa.Table, links: list[dict[str, Any]], methods: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The most urgent level by the delivery method of the receiver's link; empty if all receivers have the same.

    `links`: rows of the metric `links`; the cost is the traffic on the links of the method's receivers.
    """
    receivers = set(deliveries["receiver"].to_pylist())
    used = {methods[receiver] for receiver in receivers}
    if len(used) < 2:
        return []
    level = pc.max(deliveries["priority"]).as_py()
    urgent = deliveries.filter(pc.field("priority") == level)
    rows = []
    for method in sorted(used, key=natural):
        mine = urgent.filter(
            pc.field("receiver").isin([one for one in receivers if methods[one] == method])
        )
        own = [
            link for link in links if link["link"] in receivers and methods[link["link"]] == method
        ]
        rows.append({"method": method, "level": str(level), **_outcome(mine), "cost": _cost(own)})
    return rows


def _outcome(deliveries: pa.Table) -> dict[str, Any]:
    late = deliveries["late"].drop_null()
    errors = clock_errors.of_table(deliveries)
    return {
        **outcome(percentiles.of_table(deliveries), errors, ("p50", "p99", "max")),
        "late": pc.sum(late).as_py() if len(late) else None,
    }


def _cost(links: list[dict[str, Any]]) -> float | None:
    payload = sum(link["payload_bytes"] for link in links)
    return sum(link["wire_bytes"] for link in links) / payload if payload else None
