"""How late the machine let processes run during a run, as the lab's own monitor measured it."""

from pathlib import Path

from support.lines import records


def latest_wakeup_s(run_folder: Path) -> float:
    """The longest delay of a wake-up of the monitor, or of a packet at the relay: milliseconds on an idle machine.

    The monitor runs while links are captured. Without it this is 0.
    """
    rows = records(run_folder / "machine.jsonl")
    delays = [row[name] or 0.0 for row in rows for name in ("wakeup_max_s", "relay_late_max_s")]
    return max(delays, default=0.0)
