"""What the analysis of many runs found, as tables."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from nodes.wire import LEVEL_NAMES
from testbed.cli.summary import clock_error, seconds

NONE = "–"
SHOWN = ("p50", "p95", "p99", "mean")


def many_tables(document: dict[str, Any]) -> list[Table | str]:
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
            row["report"],
        )
    table.caption = "p50 and p95 of the most urgent level"
    return table


def _urgent(summary: dict[str, Any]) -> list[str]:
    delays = summary["delay_s"]
    if not delays:
        return [NONE, NONE]
    level = max(delays)
    return [
        seconds(delays[level][name], clock_error(summary, level, name)) for name in ("p50", "p95")
    ]


def _experiment(one: dict[str, Any]) -> Table:
    table = Table(
        title=f"{len(one['runs'])} trials: {one['overlay']}, {one['delivery']}, {one['backend']}",
        caption="95 % intervals, over trials",
    )
    table.add_column("level")
    for column in ("expected", "lost", *SHOWN):
        table.add_column(column, justify="right")
    for level, told in one["levels"].items():
        table.add_row(
            f"{level} {LEVEL_NAMES[int(level)]}",
            str(told["expected"]),
            _within(told["lost_share"], lambda share: f"{share:.2%}"),
            *(_within(told[name], seconds) for name in SHOWN),
        )
    return table


def _within(told: dict[str, float | None], write: Any) -> str:
    if told["value"] is None:
        return NONE
    return f"{write(told['value'])}\n{write(told['low'])} to {write(told['high'])}"
