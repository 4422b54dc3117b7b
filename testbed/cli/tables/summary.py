"""The summary of one run, or of many, as tables."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from analysis.formatting import not_within
from analysis.formatting import seconds_with_error as with_error
from nodes.protocol.wire import LEVEL_NAMES
from testbed.backends.common.names import SIMULATED
from testbed.recording.lateness import sentence

MOST_RECEIVERS = 10


def summary_tables(summary: dict[str, Any]) -> list[Table | Text]:
    """Delay and hops by level, the most urgent level by receiver, then messages, overhead and the verdict."""
    return [_delays(summary), *_methods(summary), *_receivers(summary), _properties(summary)]


def _delays(summary: dict[str, Any]) -> Table | Text:
    links = "" if summary["backend"] == SIMULATED else f", links by {summary['emulator']}"
    title = f"run {summary['run']} ({summary['backend']}{links})"
    if not summary["delay_s"]:
        return Text(f"{title}: nothing was delivered")
    table = Table(title=title, caption="delay from publication to the last byte at the receiver")
    table.add_column("level")
    for column in ("deliveries", "p50", "p95", "p99", "max", "hops mean", "hops max"):
        table.add_column(column, justify="right")
    for level in sorted(summary["delay_s"], reverse=True):
        delay = summary["delay_s"][level]
        hops = summary["hops"].get(level, {})
        quantiles = [
            quantile(delay, key, clock_error(summary, level, key))
            for key in ("p50", "p95", "p99", "max")
        ]
        table.add_row(
            f"{level} {LEVEL_NAMES[int(level)]}",
            _made(delay),
            *quantiles,
            f"{hops['mean']:.2f}" if hops else "",
            str(hops["max"]) if hops else "",
            style="bold" if level == "5" else "",
        )
    return table


def _methods(summary: dict[str, Any]) -> list[Table]:
    """The most urgent level by delivery method, where links have different ones."""
    methods = summary.get("by_method", {})
    if len(methods) < 2:
        return []
    urgent = max(level for levels in methods.values() for level in levels)
    rows = [(name, levels[urgent]) for name, levels in methods.items() if urgent in levels]
    return [_outcomes(f"level {urgent} by delivery method", "method", rows)]


def _receivers(summary: dict[str, Any]) -> list[Table | Text]:
    """The most urgent level, receiver by receiver, the worst served first."""
    by_receiver = summary.get("by_receiver", {})
    if not by_receiver:
        return []
    urgent = max(level for levels in by_receiver.values() for level in levels)
    rows = [(name, levels[urgent]) for name, levels in by_receiver.items() if urgent in levels]
    rows.sort(key=lambda each: (-each[1]["lost"], -(each[1]["max"] or 0.0), each[0]))
    table = _outcomes(f"level {urgent} by receiver", "receiver", rows[:MOST_RECEIVERS])
    if len(rows) > MOST_RECEIVERS:
        table.caption = f"{len(rows) - MOST_RECEIVERS} more in the report"
    return [table]


def _outcomes(title: str, of: str, rows: list[tuple[str, dict[str, Any]]]) -> Table:
    table = Table(title=title)
    table.add_column(of)
    for column in ("delivered", "lost", "p50", "p95", "max"):
        table.add_column(column, justify="right")
    for name, values in rows:
        quantiles = [
            quantile(values, key, values.get("error_s", {}).get(key, 0.0))
            for key in ("p50", "p95", "max")
        ]
        delivered = f"{values['delivered']} of {values['expected']}"
        table.add_row(name, delivered, str(values["lost"]), *quantiles)
    return table


def _properties(summary: dict[str, Any]) -> Table:
    messages, overhead = summary["messages"], summary["overhead"]
    fidelity = summary["fidelity"]
    payload, wire = overhead["payload_bytes"], overhead["wire_bytes"]
    share = f" ({wire / payload:.2f} x the payload)" if payload else ""
    table = Table(show_header=False, box=None, padding=(0, 1))
    table.add_row(
        "messages",
        f"{messages['published']} published, {messages['delivered']} of "
        f"{messages['expected_deliveries']} deliveries made, {messages['lost']} lost, "
        f"{messages['duplicates']} duplicates{_handed_twice(messages)}",
    )
    table.add_row(
        "overhead",
        f"{wire:,} bytes on all links in {overhead['packets']:,} packets for "
        f"{payload:,} bytes of payload{share}, {overhead['retransmitted_packets']} retransmitted",
    )
    if clocks := summary.get("clocks", {}).get("by_node"):
        table.add_row("clocks", _clocks(clocks))
    for title, words in _overlay(summary.get("overlay")):
        table.add_row(title, words)
    for what, late in (fidelity.get("lateness") or {}).items():
        if late:
            table.add_row("lateness", sentence(late, f"{late['n']} {what}"))
    table.add_row("fidelity", _verdict(fidelity, summary["backend"] == SIMULATED))
    return table


def _clocks(known: dict[str, Any]) -> str:
    """How many nodes have clocks of their own, and which is the worst."""
    worst = max(known, key=lambda node: known[node]["error_s"])
    own = (
        f"{len(known)} nodes have their own clocks"
        if len(known) > 1
        else "one node has its own clock"
    )
    return f"{own}; the error is largest for {worst}, at most {seconds(known[worst]['error_s'])}"


def _handed_twice(messages: dict[str, Any]) -> str:
    twice = messages.get("handed_twice", 0)
    if not twice and "handed_twice" in messages and messages["duplicates"]:
        return " on the links, none handed to an application twice"
    return f", [bold red]{twice} handed to an application twice[/]" if twice else ""


def _overlay(values: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """What several brokers did, and how those that died were got over."""
    if values is None or values["brokers"] < 2:
        return
    handled, relayed = (
        sum(level[name] for level in values["forwards"].values()) for name in ("handled", "relayed")
    )
    words = [f"{values['brokers']} brokers, {values['method']}"]
    if values["copies_per_publication"] is not None:
        words.append(f"{values['copies_per_publication']:.2f} copies per publication")
    if handled:
        words.append(
            f"{relayed / handled:.1%} of the publications that they handled were only relayed"
        )
    if (rate := values["control"]["bytes_per_s_per_broker"]) is not None:
        words.append(f"{rate:,.0f} bytes/s of control traffic per broker")
    yield "overlay", "; ".join(words)
    for row in values["repairs"]:
        yield "", _repair(row)


def _repair(row: dict[str, Any]) -> str:
    if not row["healed"]:
        return f"[bold red]{row['node']} died; not all flows were repaired: {row['lost']} lost[/]"
    if not row["flows_hit"]:
        return f"{row['node']} died; no flow was affected"
    return f"{row['node']} died; repaired after {seconds(row['repair_s'])}, {row['lost']} lost"


def _verdict(fidelity: dict[str, Any], simulated: bool) -> str:
    if not fidelity["ok"]:
        return " ".join(fidelity["reasons"])
    if simulated:
        return "simulated in virtual time: no packet was sent, no machine was measured"
    if fidelity.get("machine") is None:
        return "no check found a problem, but the machine was not monitored"
    return "the machine kept up"


def clock_error(summary: dict[str, Any], level: str, name: str) -> float:
    """How far clocks may make this quantile of this level wrong."""
    values = summary.get("delay_error_s", {}).get(level)
    return float(values["of"].get(name, 0.0)) if values else 0.0


def quantile(row: Mapping[str, Any], name: str, error: float = 0.0) -> str:
    """A quantile of a row, or the bound of one that was not reached; empty if nothing is known."""
    bound = (row.get("not_within_s") or {}).get(name)
    if row.get(name) is not None:
        return seconds(row[name], error)
    return "" if bound is None else not_within(bound).replace("\u00a0", " ")


def _made(delay: Mapping[str, Any]) -> str:
    """Number of deliveries, and of how many expected ones if some have not come."""
    made, expected = delay["n"], delay.get("expected", delay["n"])
    return str(made) if made == expected else f"{made} of {expected}"


def seconds(value: float, error: float = 0.0) -> str:
    """Milliseconds below a second, seconds above; in no more digits than an error leaves."""
    if error:
        return with_error(value, error).replace("\u00a0", " ")
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


# What the analysis of many runs found, as tables.


NONE = "–"
SHOWN = ("p50", "p95", "p99", "mean")


def batch_tables(document: dict[str, Any]) -> list[Table | str]:
    """All runs, then experiments of several trials with their intervals, then where the dataset is."""
    shown: list[Table | str] = [_runs(document["runs"])]
    shown += [_experiment(one) for one in document["experiments"]]
    if document["dataset"]:
        shown.append(f"dataset: {document['dataset']}")
    return shown


def _runs(rows: list[dict[str, Any]]) -> Table:
    table = Table("run", title=f"{len(rows)} runs")
    for column in ("trial", "published", "delivered", "lost", "late", "out of order", "p50", "p95"):
        table.add_column(column, justify="right")
    table.add_column("report")
    for row in rows:
        if row["summary"] is None:
            blank = [NONE] * 8
            table.add_row(row["run"], *blank, f"[bold red]{escape(row['error']['message'])}[/]")
            continue
        messages, levels = row["summary"]["messages"], row["summary"]["by_priority"].values()
        late = [level["late"] for level in levels if level["late"] is not None]
        table.add_row(
            row["run"],
            str(row["trial"]),
            str(messages["published"]),
            f"{messages['delivered']} of {messages['expected_deliveries']}",
            str(messages["lost"]),
            str(sum(late)) if late else NONE,
            str(sum(level["out_of_order"] for level in levels)),
            *_urgent(row["summary"]),
            row["report"] or NONE,
        )
    table.caption = "p50 and p95 of the most urgent level"
    return table


def _urgent(summary: dict[str, Any]) -> list[str]:
    delays = summary["delay_s"]
    if not delays:
        return [NONE, NONE]
    level = max(delays)
    return [
        quantile(delays[level], name, clock_error(summary, level, name)) for name in ("p50", "p95")
    ]


def _experiment(one: dict[str, Any]) -> Table:
    table = Table(
        title=f"{len(one['runs'])} trials: {one['overlay']}, {one['delivery']}, {one['backend']}",
        caption="95 % intervals, over trials",
    )
    table.add_column("level")
    for column in ("expected", "lost", *SHOWN):
        table.add_column(column, justify="right")
    for level, values in one["levels"].items():
        table.add_row(
            f"{level} {LEVEL_NAMES[int(level)]}",
            str(values["expected"]),
            _within(values["lost_share"], lambda share: f"{share:.2%}"),
            *(_within(values[name], seconds) for name in SHOWN),
        )
    return table


def _within(values: dict[str, float | None], write: Callable[[float], str]) -> str:
    if values["value"] is None:
        return value_or_bound(values, write)
    return f"{write(values['value'])}\n{interval(values, write)}"


def value_or_bound(values: Mapping[str, float | None], write: Callable[[float], str]) -> str:
    """A statistic of several runs, or the bound of one that was not reached."""
    value, bound = values["value"], values.get("not_within_s")
    if value is not None:
        return write(value)
    return NONE if bound is None else not_within(bound).replace("\u00a0", " ")


def interval(values: Mapping[str, float | None], write: Callable[[float], str]) -> str:
    """The ends of an interval; the upper one is null if it was not reached."""
    low, high = values["low"], values["high"]
    if low is None:
        return NONE
    return f"{write(low)} or more" if high is None else f"{write(low)} to {write(high)}"
