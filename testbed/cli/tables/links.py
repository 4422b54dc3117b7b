"""Links and their calibration as tables: one row a direction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table

from testbed.cli.terminal import Fitting, what_is_missing
from testbed.lab.links import LinkView
from testbed.links.changes import DirectionState
from testbed.links.values import format_values
from testbed.topology.units import RATE

_VALUES = ("rate", "delay", "jitter", "loss", "queue")
_DIRECTION = "direction"
_DROPPED = {"dropped_queue": "queue full", "dropped_loss": "lost", "dropped_cut": "cut"}


_LEFT_OUT = (("profile",), ("profile", "forwarded"), ("profile", "forwarded", "behind"))


def links_table(views: Sequence[LinkView], directions: Sequence[str]) -> Fitting:
    """Only columns that have something to say: a lab without routers has no `behind`."""
    behind = ["behind"] if any(view.behind for view in views) else []
    counts = ["forwarded", "dropped"] if any(view.counts for view in views) else []
    known = ["link", "profile", *behind, _DIRECTION, *_VALUES, "state", *counts]

    def make(left_out: Collection[str]) -> Table:
        columns = [name for name in known if name not in left_out]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.caption = what_is_missing(known, left_out)
        for name in columns:
            table.add_column(
                "" if name == _DIRECTION else name,
                justify="right" if name in (*_VALUES, "forwarded") else "left",
                no_wrap=name != "dropped",
            )
        for view in views:
            for direction in directions:
                cells = _cells(view, direction)
                table.add_row(*(cells.get(name, "") for name in columns))
        return table

    return Fitting(make, _LEFT_OUT)


def _cells(view: LinkView, direction: str) -> dict[str, str]:
    return {
        "link": view.name,
        "profile": view.profile,
        "behind": view.behind or "",
        _DIRECTION: direction,
        **_values(view, direction),
        **_counts(view.counts.get(direction, {})),
    }


def _values(view: LinkView, direction: str) -> dict[str, str]:
    if view.now is None:
        return {"state": "no link"}
    direction_state = view.now.direction_state(direction)
    limit = view.queue_limits[direction]
    return {
        **format_values({**asdict(direction_state.shape), "queue_bytes": limit}),
        "state": state(direction_state, view.configured.direction_state(direction)),
    }


def state(direction_state: DirectionState, configured: DirectionState) -> str:
    """Beside the file: as it says (filed), changed, cut."""
    changed = direction_state.shape != configured.shape
    if direction_state.cut:
        return "cut, changed" if changed else "cut"
    return "changed" if changed else "as filed"


def _counts(counts: Mapping[str, int]) -> dict[str, str]:
    """How many came through, and why the others did not."""
    if not counts:
        return {}
    dropped = [f"{counts[key]} {why}" for key, why in _DROPPED.items() if counts.get(key)]
    return {"forwarded": str(counts.get("forwarded", "")), "dropped": ", ".join(dropped) or "0"}


# What a calibration found, as a table.


def calibration_table(results: Sequence[dict[str, Any]]) -> Table:
    """Asked and achieved side by side, a row a direction."""
    table = Table(title="links: asked and achieved")
    for column in ("profile", "direction"):
        table.add_column(column)
    for column in ("rate asked", "achieved", "delay asked", "achieved", "loss asked", "achieved"):
        table.add_column(column, justify="right")
    table.add_column("within limits")
    for result in results:
        asked, achieved = result["asked"], result["achieved"]
        table.add_row(
            result["profile"],
            result["direction"],
            _rate(asked["rate_bps"], "not limited"),
            _rate(achieved["rate_bps"], "not measured"),
            _milliseconds(asked["delay_s"]),
            _milliseconds(achieved["delay_s"]),
            _percent(asked["loss"]),
            _percent(achieved["loss"]),
            "yes" if result["ok"] else "no: " + "; ".join(result["reasons"]),
        )
    return table


def _rate(bps: float | None, none: str) -> str:
    return none if bps is None else RATE.write(float(f"{bps:.4g}"))


def _milliseconds(seconds: float | None) -> str:
    return "not measured" if seconds is None else f"{seconds * 1000:.2f} ms"


def _percent(share: float | None) -> str:
    return "not measured" if share is None else f"{share * 100:.3g} %"
