"""How long an urgent message takes on a narrow link behind large ones, and what it costs.

See docs/explanation/benchmarks.md.
`python -m benchmarks.delivery [--what rates,processor,...] [--seconds 180] [--scale 1] [--json] [--check]`
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.support.delivery import contestants
from benchmarks.support.delivery.contestant import Contestant
from benchmarks.support.delivery.links import LinkKind, LinksUnderTest
from benchmarks.support.delivery.scheduling import Cost, cost
from benchmarks.support.delivery.small_machine import SmallMachines
from benchmarks.support.delivery.traffic import ROUTINE_BYTES, Due, Row, timeline
from benchmarks.support.harness import Report, json_row, run
from testbed.backends.docker.board_classes import BOARDS, Limits, limits
from testbed.backends.docker.core_speed import core_speed
from testbed.errors import InputError
from testbed.topology.model import Shape

# The tables.


def delays(title: str, rows: Sequence[Row]) -> Table:
    """The delays of urgent messages on one kind of link."""
    shown = Table(title=title)
    shown.add_column("", no_wrap=True)
    columns = ("p50 s", "p95 s", "largest s", "urgent", "routine in time", "in the end")
    for column in (*columns, "wire / payload", "ms a message"):
        shown.add_column(column, justify="right")
    for row in rows:
        shown.add_row(
            row.name,
            *(f"{value:.3f}" for value in (row.p50_s, row.p95_s, row.largest_s)),
            f"{row.urgent_arrived} of {row.urgent_sent}",
            f"{row.routine_in_time:.0%}",
            f"{row.routine_arrived:.0%}",
            f"{row.wire_per_payload:.4f}",
            f"{row.processor_ms:.2f}",
        )
    return shown


def costs(title: str, found: Sequence[Cost]) -> Table:
    """The costs of the schedulers."""
    shown = Table(title=title)
    shown.add_column("", no_wrap=True)
    for column in ("µs a message", "µs a chunk", "chunks", "calls"):
        shown.add_column(column, justify="right")
    for one in found:
        times = (f"{one.per_message:.1f}", f"{one.per_chunk:.2f}")
        shown.add_row(one.method, *times, str(one.chunks), str(one.calls))
    return shown


LIMITS = {
    "preemptive_vs_dmpq": 0.8,  # largest delays at 7 kB/s; so are all but the last
    "preemptive_vs_zenoh": 1.0,
    "preemptive_vs_zenoh_tuned": 1.0,
    "preemptive_vs_mosquitto": 1.0,
    "preemptive_wire_vs_dmpq": 1.0,  # bytes on the link
}
KB = 8_000.0  # bits
NARROW, WIDER = 7 * KB, 20 * KB
NARROW_NAME = "7 kB/s"
SEED = 2016
DEFAULT = "rates,processor"
SMALL_QUEUE = 250_000  # bytes: two and a half routine messages
WIDTH = 130  # columns of the tables


@dataclass(frozen=True, slots=True)
class Asked:
    """How long, how fast, and for which contestants."""

    seconds: float
    scale: float
    only: tuple[str, ...]  # names of contestants; none: all
    as_json: bool

    @property
    def timeline(self) -> tuple[Due, ...]:
        """The messages that every contestant sends."""
        return timeline(self.seconds, SEED, self.scale)

    def shape(self, rate_bps: float, delay_s: float = 0.0, loss: float = 0.0) -> Shape:
        """A link of this rate, multiplied by the scale of time."""
        return Shape(rate_bps=rate_bps * self.scale, delay_s=delay_s / self.scale, loss=loss)

    def show(self, *what: object) -> None:
        """Print tables, unless the output is JSON."""
        if not self.as_json:
            Console(highlight=False, width=WIDTH).print(*what)


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delivery", description=__doc__)
    parser.add_argument("--what", default=DEFAULT, help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=180.0, help="of sending")
    parser.add_argument("--scale", type=float, default=1.0, help="all so many times faster")
    parser.add_argument("--only", default="", help="names of contestants; all")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    options = parser.parse_args()
    chosen = options.what.split(",")
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there is {', '.join(PARTS)}")
    only = tuple(filter(None, options.only.split(",")))
    asked = Asked(options.seconds, options.scale, only, options.json)

    def measure(report: Report, folder: Path) -> None:
        for part in chosen:
            (folder / part).mkdir()
            PARTS[part](report, folder / part, asked)

    return run(Report(LIMITS), measure, as_json=options.json, check=options.check)


def rates(report: Report, folder: Path, asked: Asked) -> None:
    """The links of the thesis: routine messages alone overload one, and fill the other by half."""
    links = [
        LinkKind(NARROW_NAME, asked.shape(NARROW)),
        LinkKind("20 kB/s", asked.shape(WIDER)),
    ]
    candidates = [*contestants.ours(), *contestants.others()]
    found = race(report, folder, asked, links, candidates)
    compare(report, {row.name: row for row in found[NARROW_NAME]})


def compare(report: Report, rows: dict[str, Row]) -> None:
    """Compare our methods with the others on the same link; of several settings of one peer, with the best."""
    ours = rows.get(contestants.PREEMPTIVE)
    against = {
        "preemptive_vs_dmpq": [contestants.DMPQ],
        "preemptive_vs_zenoh": [contestants.ZENOH, contestants.ZENOH_PATIENT],
        "preemptive_vs_zenoh_tuned": [contestants.ZENOH_TUNED, contestants.ZENOH_HALF],
        "preemptive_vs_mosquitto": [contestants.MOSQUITTO],
    }
    for name, those in against.items():
        if ours is not None and (best := [rows[one].largest_s for one in those if one in rows]):
            report.ratios[name] = round(ours.largest_s / min(best), 3)
    if ours is not None and (dmpq := rows.get(contestants.DMPQ)) is not None:
        ratio = ours.wire_per_payload / dmpq.wire_per_payload
        report.ratios["preemptive_wire_vs_dmpq"] = round(ratio, 4)


def jumbo(report: Report, folder: Path, asked: Asked) -> None:
    """Packets of 9,000 bytes (thesis, 6.6)."""
    link = LinkKind("20 kB/s, MTU 9000", asked.shape(WIDER), mtu=9000)
    candidates = [
        *contestants.ours(),
        *contestants.fitted_to_the_packet(),
        *contestants.others(),
    ]
    race(report, folder, asked, [link], candidates)


def background(report: Report, folder: Path, asked: Asked) -> None:
    """Other traffic takes 30 % of the link (6.7)."""
    link = LinkKind("20 kB/s, 30 % taken by others", asked.shape(WIDER), noise=0.3)
    race(report, folder, asked, [link], [*contestants.ours(), *contestants.others()])


def loss(report: Report, folder: Path, asked: Asked) -> None:
    """The link loses packets in both directions (6.8)."""
    link = LinkKind("20 kB/s, 2 % loss", asked.shape(WIDER, loss=0.02), Shape(loss=0.02))
    race(report, folder, asked, [link], [*contestants.ours(), *contestants.others()])


def delay(report: Report, folder: Path, asked: Asked) -> None:
    """A link with the delay of a mobile network, which the thesis' link does not have."""
    back = Shape(delay_s=0.06 / asked.scale)
    link = LinkKind("20 kB/s, 60 ms each way", asked.shape(WIDER, delay_s=0.06), back)
    race(report, folder, asked, [link], [*contestants.ours(), *contestants.others()])


def pi_zero(report: Report, folder: Path, asked: Asked) -> None:
    """The sender on the link is as slow as a Raspberry Pi Zero, and our queues hold little (6.3)."""
    board = limits(BOARDS["pi-zero"], core_speed())
    report.details["pi-zero"] = board.in_words()
    link = LinkKind(f"7 kB/s, a Pi Zero, {SMALL_QUEUE // 1000} kB of queue", asked.shape(NARROW))
    candidates = [*contestants.ours(SMALL_QUEUE), *contestants.others()]
    race(report, folder, asked, [link], candidates, board)


def race(
    report: Report,
    folder: Path,
    asked: Asked,
    links: Sequence[LinkKind],
    candidates: Sequence[Contestant],
    board: Limits | None = None,
) -> dict[str, list[Row]]:
    """Run all contestants on each kind of link, all at the same time."""
    chosen = [one for one in candidates if not asked.only or one.name in asked.only]
    if not chosen:
        names = ", ".join(one.name for one in candidates)
        raise InputError(f"none of {', '.join(asked.only)} takes part", f"there is {names}")
    for contestant in chosen:
        contestant.check()
    slowest = min(link.down.rate_bps or 0 for link in links) / 8
    offered = sum(due.size for due in asked.timeline)
    longest_s = 1.5 * max(asked.seconds / asked.scale, offered / slowest) + 10
    with ExitStack() as stack:
        small = None if board is None else stack.enter_context(SmallMachines(board))
        core = stack.enter_context(LinksUnderTest(folder))
        for link in links:
            for contestant in chosen:
                core.add(link, contestant, asked.timeline)
        core.up()
        if small is not None:
            for pid in core.sender_pids:
                small.hold(pid)
        found = core.played(longest_s, quiet_s=3 * ROUTINE_BYTES / slowest)
    for title, rows in found.items():
        asked.show(delays(title, rows))
        if asked.as_json:
            report.details.setdefault("lines", {})[title] = [json_row(row) for row in rows]
    return found


def processor(report: Report, folder: Path, asked: Asked) -> None:
    """Processor time of the schedulers alone, and of whole senders on a link that never makes them wait."""
    due = timeline(600, SEED)
    found = []
    for contestant in contestants.ours():
        method, parameters = contestant.method, contestant.parameters
        if contestant.name != contestants.TWO:
            found.append(cost(method, parameters, due, WIDER / 8, contestant.name))
    asked.show(costs("schedulers alone, 20 kB/s", found))
    if asked.as_json:
        report.details["schedulers"] = [json_row(one) for one in found]
    dense = Asked(200.0, 20.0, asked.only, asked.as_json)
    link = LinkKind("100 Mbit/s", Shape(rate_bps=100e6))
    race(report, folder, dense, [link], [*contestants.ours(), *contestants.others()])


PARTS: dict[str, Callable[[Report, Path, Asked], Any]] = {
    "rates": rates,
    "processor": processor,
    "jumbo": jumbo,
    "background": background,
    "loss": loss,
    "delay": delay,
    "pi-zero": pi_zero,
}


if __name__ == "__main__":
    sys.exit(main())
