"""A sweep's cells and results as tables."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.table import Table

from testbed.cli.summary import seconds
from testbed.sweeps.cells import Cell

MOST_SHOWN = 40


def cells_table(cells: Sequence[Cell], done: Collection[int]) -> Table:
    """What would be run, in its order."""
    table = Table(title="cells")
    paths = [path for path, _ in cells[0].settings]
    for column in ("cell", *paths, "seed", "done"):
        table.add_column(column, justify="right" if column in ("cell", "seed") else "left")
    for cell in cells[:MOST_SHOWN]:
        values = [value for _, value in cell.settings]
        finished = "yes" if cell.number in done else ""
        table.add_row(str(cell.number), *values, str(cell.seed), finished)
    if len(cells) > MOST_SHOWN:
        table.caption = f"and {len(cells) - MOST_SHOWN:,} more"
    return table


def points_table(document: Mapping[str, Any]) -> Table:
    """The most urgent level of each combination."""
    points = document["points"]
    urgent = max((level for point in points for level in point["levels"]), default="")
    paths = [axis["path"] for axis in document["axes"] if len(axis["values"]) > 1]
    table = Table(
        title=f"level {urgent} over {document['trials']} "
        f"{'trial' if document['trials'] == 1 else 'trials'} of each combination",
        caption="in brackets: its 95 % interval",
    )
    for column in short(paths):
        table.add_column(column)
    for column in ("runs", "lost", "p50", "p95", "as expected"):
        table.add_column(column, justify="right", no_wrap=True)
    for point in points[:MOST_SHOWN]:
        told = point["levels"].get(urgent)
        numbers = (
            [_share(told["lost_share"]), _time(told["p50"]), _with_interval(told["p95"])]
            if told
            else ["", "", ""]
        )
        runs = len(point["runs"])
        met = "" if point["met"] is None else f"{point['met']} of {runs}"
        table.add_row(*(point["settings"][path] for path in paths), str(runs), *numbers, met)
    if len(points) > MOST_SHOWN:
        table.caption = f"{len(points) - MOST_SHOWN:,} more combinations in the report"
    return table


def failed_table(document: Mapping[str, Any]) -> list[Table]:
    """Cells that have no result; nothing if all have."""
    if not document["failed"]:
        return []
    table = Table("cell", "settings", "why", title=f"{len(document['failed'])} cells failed")
    for one in document["failed"][:MOST_SHOWN]:
        settings = ", ".join("=".join(pair) for pair in one["settings"])
        table.add_row(str(one["number"]), f"{settings} seed={one['seed']}".strip(), one["error"])
    return [table]


def short(paths: Sequence[str]) -> list[str]:
    """The ends of paths, as long as is needed to tell them apart."""
    steps = [path.split(".") for path in paths]
    for size in range(1, max(map(len, steps), default=0) + 1):
        ends = [".".join(one[-size:]) for one in steps]
        if len(set(ends)) == len(ends):
            return ends
    return list(paths)


def _time(found: Mapping[str, Any]) -> str:
    return "nothing came" if found["value"] is None else seconds(found["value"])


def _with_interval(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return ""
    return f"{_time(found)} ({seconds(found['low'])} to {seconds(found['high'])})"


def _share(found: Mapping[str, Any]) -> str:
    return "" if found["value"] is None else f"{found['value']:.2%}"
