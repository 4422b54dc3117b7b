"""The labs of the experiment on waiting, as topology files: the same in the simulator and in namespaces.

Sites with a broker and a gauge each, behind a router with a 3G or MVNO line of its own, push readings to one office
(`collection`, descending).
"""

from dataclasses import dataclass
from typing import Any

TOPIC, OFFICE = "water", "office"
LINES = ("3g-384k", "mvno-128k")  # in turn, from period to period
# The brokers form their graph, then gauges begin; a period is known from three readings, and keys change after that.
BEGIN_S, PERIODS_TO_LEARN, CHANGING_S = 5, 3, 5
SETTLE_S = 15


@dataclass(frozen=True, slots=True)
class WaitingLab:
    """One time to wait, and for how long readings count once all periods are learnt."""

    wait_ms: int
    longest_s: int  # periods are 1, 2, ... seconds up to this, one site each
    seed: int
    measured_s: int

    @property
    def name(self) -> str:
        return f"waiting-{self.wait_ms}ms"

    @property
    def sites(self) -> int:
        return self.longest_s

    @property
    def learnt_s(self) -> int:
        """From here on every key is final."""
        return BEGIN_S + PERIODS_TO_LEARN * self.longest_s + CHANGING_S

    def text(self) -> str:
        """As a topology file."""
        groups, events = [], []
        periods = range(1, self.longest_s + 1)
        for line, profile in enumerate(LINES):
            count = len(periods[line :: len(LINES)])
            groups += [
                f"  lines-{line}: {{kind: router, count: {count}, link: {profile}}}",
                f'  brokers-{line}: {{kind: broker, count: {count}, router: "lines-{line}[*]"}}',
                f'  gauges-{line}: {{kind: sensor, count: {count}, router: "lines-{line}[*]"}}',
            ]
        for place, period in enumerate(periods):
            site, line = divmod(place, len(LINES))
            published = (
                f"from: 'gauges-{line}[{site}]', topic: {TOPIC}, size: 4B, period: {period}s"
            )
            events.append(f"    - {{at: {BEGIN_S}s, publish: {{{published}}}}}")
        return "\n".join(
            [
                f"name: {self.name}",
                f"seed: {self.seed}",
                "groups:",
                *groups,
                "nodes:",
                "  center: {kind: broker, link: lan}",
                f"  {OFFICE}: {{kind: subscriber, link: lan, topics: [{TOPIC}], home: center}}",
                f"overlay: {{method: collection, wait_s: {self.wait_ms / 1000:g}}}",
                "scenario:",
                f"  duration: {self.learnt_s + self.measured_s}s",
                f"  settle: {SETTLE_S}s",
                "  events:",
                *events,
                "",
            ]
        )

    def sheet(self, trial: int) -> dict[str, Any]:
        """What the analysis must know of a run of it, for the run's manifest."""
        return {
            "name": "kawakami2016",
            "trial": trial,
            "sites": self.sites,
            "wait_ms": self.wait_ms,
            "learnt_s": self.learnt_s,
            "measured_s": self.measured_s,
            "office": OFFICE,
        }
