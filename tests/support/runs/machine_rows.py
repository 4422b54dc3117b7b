"""Rows of a made-up machine.jsonl."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.runs.star_runs import MS, START_NS

PLAYED_NS = START_NS + 1_000 * MS  # when the scenario of a StarRun begins; it ends 10 s later


def machine_row(second: float, **changes: Any) -> dict[str, Any]:
    """The row of an idle second that begins this long after the scenario's start."""
    return {
        "t": PLAYED_NS + round((second + 1) * 1e9),
        "span_s": 1.0,
        "cpu_idle": 0.8,
        "cpu_stolen": 0.0,
        "throttled_s": None,
        "running": 1,
        "pressure_cpu": 0.01,
        "pressure_memory": 0.0,
        "pressure_io": 0.0,
        "wakeup_p50_s": 5e-05,
        "wakeup_max_s": 0.0009,
        "wakeups_us": [[64, 90], [128, 9], [960, 1]],
        "memory_bytes": 25_000_000_000,
        "memory_free_bytes": 20_000_000_000,
        "swapped_in_bytes": 0,
        "swapped_out_bytes": 0,
        "capture_dropped": 0,
        "relay_forwarded": 100,
        "relay_late_max_s": 0.0004,
        "relay_late_us": [[128, 98], [512, 2]],
        **changes,
    }


def quiet(seconds: Iterable[int] = range(-2, 10)) -> list[dict[str, Any]]:
    return [machine_row(second) for second in seconds]


def write_rows(folder: Path, rows: Iterable[dict[str, Any]]) -> None:
    (folder / "machine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
