"""How late publications, faults and starts are, against their times in the scenario.

See docs/explanation/benchmarks.md.
`python -m benchmarks.timing [--count 1,20,200] [--seconds N] [--backend netns|docker] [--json] [--check]`
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.support.harness import Report, run
from benchmarks.support.labs import BenchmarkLab
from testbed.recording.actions import recorded
from testbed.recording.lateness import Lateness, lateness
from testbed.recording.publications import read_recorded_publications
from testbed.topology.model import ActionKind

COUNTS = (1, 20, 200)
KINDS = ("publications", "faults", "starts", "behind_starts")
GOAL_S = 0.020  # of the 99th percentile
SECONDS = 30
_LAB = """\
name: {name}
groups:
  sensors: {{kind: sensor, count: {count}, link: mvno-128k}}
  spares: {{kind: sensor, count: {spares}, link: mvno-128k}}
  fallen: {{kind: sensor, count: 2, link: mvno-128k}}
nodes:
  broker: {{kind: broker, link: lan}}
  office: {{kind: subscriber, link: lan, topics: [readings]}}
  behind: {{kind: sensor, link: mvno-128k}}
scenario:
  duration: {seconds}s
  events:
    - {{at: 0s, publish: {{from: "sensors[*]", topic: readings, priority: 1, size: 100B, period: 1s, spread: 1s}}}}
{faults}"""


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing", description=__doc__)
    parser.add_argument("--count", default=",".join(map(str, COUNTS)), help="publishers, each lab")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of each scenario")
    parser.add_argument("--backend", default="netns", help="netns or docker")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    counts = [int(count) for count in asked.count.split(",")]
    kinds = [f"{kind}_{count}" for count in counts for kind in KINDS]
    report = Report(dict.fromkeys(kinds, 1.0))

    def measure(report: Report, folder: Path) -> None:
        for count in counts:
            of_one_lab(report, folder, count, asked.seconds, asked.backend)

    return run(report, measure, as_json=asked.json, check=asked.check)


def of_one_lab(report: Report, folder: Path, count: int, seconds: int, backend: str) -> None:
    """This many sensors publish once a second each; every second nodes or links fail, and one is started again."""
    text = topology(f"timing-{count}", count, seconds)
    lab = BenchmarkLab(f"timing-{count}", folder, text, backend, {})
    with ExitStack() as whatever_is_left:
        whatever_is_left.callback(lab.clear)
        lab.up()
        lab.command("play", lab.name)
        lab.down()
    place, manifest = lab.newest_run(), lab.manifest()
    rows = read_recorded_publications(place.published.read_text().splitlines())
    note(
        report, f"publications_{count}", lateness(r.late_ns for r in rows if r.late_ns is not None)
    )
    late: defaultdict[str, list[int]] = defaultdict(list)
    for entry in recorded(manifest):
        late[kind_of(entry)].append(entry["t_ns"] - entry["due_ns"])
    for kind, each in late.items():
        note(report, f"{kind}_{count}", lateness(each))


def kind_of(entry: Mapping[str, Any]) -> str:
    """The kind under which an action of the manifest is measured."""
    if entry["action"] == ActionKind.START:
        return "starts"
    return "behind_starts" if entry["targets"] == ["behind"] else "faults"


def note(report: Report, name: str, late: Lateness | None) -> None:
    """Record the 99th percentile as a share of the goal, and all values as a detail."""
    if late is None:
        return
    report.ratios[name] = round(late.p99_s / GOAL_S, 3)
    report.details[name] = {
        key: value if key == "n" else f"{value * 1000:.2f} ms"
        for key, value in asdict(late).items()
    }


def topology(name: str, count: int, seconds: int) -> str:
    """The topology, with several faults in each second.

    In different parts of the second a node is started again, 20 ms later a link is cut or restored, a node crashes that
    will be started, and a spare sensor crashes or loses its link.
    """
    rounds = max(1, seconds - 2)
    faults = "".join(
        f"    - {{at: {place + 1}.25s, for: 750ms, crash: {{nodes: fallen-{place % 2}}}}}\n"
        f"    - {{at: {place + 1}.5s, {'cut' if place % 2 else 'crash'}: {{nodes: spares-{place}}}}}\n"
        f"    - {{at: {place + 2}.02s, {'restore' if place % 2 else 'cut'}: {{nodes: behind}}}}\n"
        for place in range(rounds)
    )
    return _LAB.format(name=name, count=count, spares=rounds, seconds=seconds, faults=faults)


if __name__ == "__main__":
    sys.exit(main())
