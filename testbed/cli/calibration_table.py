"""What a calibration found, as a table."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from testbed.topology.units import RATE


def calibration_table(results: Sequence[dict[str, Any]]) -> Table:
    """Asked and achieved side by side, a row a direction."""
    table = Table(title="links: asked and achieved")
    for column in ("profile", "direction"):
        table.add_column(column)
    for column in ("rate asked", "achieved", "delay asked", "achieved", "loss asked", "achieved"):
        table.add_column(column, justify="right")
    table.add_column("as asked")
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
