"""What a benchmark found, for people and for programs."""

import json
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from testbed.machine import machine_facts


@dataclass(slots=True)
class Report:
    """Ratios with their limits, and the measurements they were made from."""

    limits: dict[str, float]
    ratios: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # what took how long, each round
    details: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=machine_facts)

    def took(self, what: str, seconds: float) -> None:
        """Note one measurement."""
        self.seconds.setdefault(what, []).append(round(seconds, 3))

    def compare(self, name: str, ours: str, peer: str) -> None:
        """The ratio of the medians of two things that were timed."""
        self.ratios[name] = round(median(self.seconds[ours]) / median(self.seconds[peer]), 3)

    @property
    def above(self) -> list[str]:
        """The ratios that are above their limit."""
        return [name for name, ratio in self.ratios.items() if ratio > self.limits[name]]

    def show(self, as_json: bool) -> None:
        """Print it."""
        if as_json:
            measured = {name: limit for name, limit in self.limits.items() if name in self.ratios}
            print(json.dumps({**asdict(self), "limits": measured}, indent=2))
            return
        console = Console(highlight=False)
        times = Table("what", "seconds")
        for what, seconds in self.seconds.items():
            times.add_row(what, ", ".join(f"{value:.2f}" for value in seconds))
        verdicts = Table("ratio", "measured", "limit", "")
        for name, ratio in self.ratios.items():
            limit = self.limits[name]
            verdict = "above" if ratio > limit else "within"
            verdicts.add_row(name, f"{ratio:.3f}", f"{limit:g}", verdict)
        details = Table("detail", "value")
        for key, value in self.details.items():
            details.add_row(key, str(value))
        console.print(*(table for table in (times, verdicts, details) if table.row_count))
        about = self.machine
        memory = about["memory_bytes"] / 2**30
        console.print(
            f"{about['cpu']}, {about['cores']} cores, {memory:.0f} GiB, Linux {about['kernel']}, "
            f"load {about['load_average']:.1f} before",
            markup=False,
        )
