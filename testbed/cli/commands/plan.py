"""`testbed plan FILE`: the steps that `up` would take, and the scenario drawn as a timeline."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from testbed.backends.registry import known_backend, make_backend
from testbed.cli.options import AsJson, BackendName, NewName, Overrides, ScenarioFile, TopologyFile
from testbed.cli.terminal import Terminal
from testbed.lab.start.disk import free_bytes, shortage, size_text
from testbed.lab.start.preconditions import refuse_another_lab
from testbed.lab.up import as_numbered
from testbed.places import LabPlace, captures_root
from testbed.plan import Actual, Step, batches, plan_up
from testbed.progress import ignore
from testbed.recording.disk_estimate import DiskEstimate, estimate_disk
from testbed.records import load_lab
from testbed.scenario.timeline import TimelineRow, timeline_rows
from testbed.topology import load
from testbed.topology.model import Topology
from testbed.topology.units import DURATION

WIDTH = 40  # characters of the time axis
SHOWN_NODES = 3
Abbreviate = Callable[[Sequence[str], Topology], Mapping[str, int]]


def timeline_table(topology: Topology, short_names: Abbreviate) -> Table:
    """What happens when; `short_names` names nodes briefly."""
    scenario = topology.scenario
    title = f"what happens, in {DURATION.write(scenario.duration_s)}"
    if scenario.speed != 1.0:
        title += f", played {scenario.speed:g} times as fast"
    table = Table(title=title)
    table.add_column("from", justify="right", no_wrap=True)
    table.add_column("what")
    table.add_column("targets")
    table.add_column(axis(scenario.duration_s), width=WIDTH)
    for row in timeline_rows(topology):
        what = Text(row.what, style="bold").append(f" {row.description}", style="not bold")
        table.add_row(
            _begin(row),
            what,
            Text(_targets(row, topology, short_names)),
            Text(drawn(row, scenario.duration_s)),
        )
    return table


def axis(duration_s: float) -> Text:
    """The time axis: its begin and its end."""
    end = DURATION.write(duration_s)
    return Text("0s" + end.rjust(WIDTH - 2))


def drawn(row: TimelineRow, duration_s: float) -> str:
    """Its place on the time axis: a block while it lasts, a dot for a moment."""
    if row.when is not None:
        return f"when {row.when}"
    cells = ["·"] * WIDTH
    for begin_s in row.moments_s:
        first = _place(begin_s, duration_s)
        if row.lasts_s is None:
            cells[first] = "●"
            continue
        last = _place(begin_s + row.lasts_s, duration_s)
        for place in range(first, last + 1):
            cells[place] = "█"
    return "".join(cells)


def _place(at_s: float, duration_s: float) -> int:
    return min(WIDTH - 1, int(at_s / duration_s * WIDTH)) if duration_s else 0


def _begin(row: TimelineRow) -> str:
    first = DURATION.write(row.moments_s[0]) if row.moments_s[0] else "0s"
    if row.when is not None:
        return f"+{first}" if row.moments_s[0] else ""
    return first if len(row.moments_s) == 1 else f"{first}, {len(row.moments_s)} times"


def _targets(row: TimelineRow, topology: Topology, short_names: Abbreviate) -> str:
    named = list(short_names(row.nodes, topology))
    more = len(named) - SHOWN_NODES
    shown = ", ".join(named[:SHOWN_NODES]) + (f", … {more} more" if more > 0 else "")
    return shown if row.share >= 1.0 else f"{row.share:.0%} of {shown}"


SHOWN_TARGETS = 8


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed plan topologies/demo.yaml")(plan)


def plan(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    backend: BackendName = None,
    as_json: AsJson = False,
) -> None:
    """Show the steps that `up` would take now, and the scenario's timeline. The command changes nothing."""
    with Terminal(as_json) as terminal:
        topology = load(file, name=name, scenario=scenario, overrides=overrides or ())
        show_plan(topology, file, backend, terminal)


def show_plan(topology: Topology, file: Path, asked: str | None, terminal: Terminal) -> None:
    """The steps from what exists to what the topology asks for; refused where `up` would be."""
    known_backend(asked)
    place = LabPlace.of(topology.name)
    known = load_lab(place)
    if known is not None:
        refuse_another_lab(known, file, asked)
        topology = as_numbered(topology, known)
    actual = (
        make_backend(known.backend, place, known.run_place, topology, ignore).inspect()
        if known
        else Actual()
    )
    steps = plan_up(topology, actual)
    disk = estimate_disk(topology)
    terminal.document(
        {
            "lab": topology.name,
            "steps": [{"kind": s.kind, "target": s.target, "reason": s.reason} for s in steps],
            "timeline": [row.to_json() for row in timeline_rows(topology)],
            "disk": disk.to_json(),
        }
    )
    terminal.show(
        plan_table(steps, topology)
        if steps
        else f"lab {topology.name} is as the file asks; nothing to do"
    )
    if topology.scenario.publish or topology.scenario.actions:
        terminal.show(timeline_table(topology, abbreviate))
    terminal.show(disk_line(disk))


def disk_line(disk: DiskEstimate) -> str:
    """What a run of it takes on the disk, and what there is."""
    root = captures_root()
    parts = f"{size_text(disk.captures)} of captures, {size_text(disk.logs + disk.results)} of logs and results"
    free = free_bytes(root)
    return shortage(disk, free, root) or (
        f"a run takes about {size_text(disk.total)} ({parts}); {size_text(free)} are free"
    )


def plan_table(steps: tuple[Step, ...], topology: Topology) -> Table:
    """One row for steps that differ only in their target; whole groups are named as such."""
    table = Table("step", "how many", "targets", "why", title="what `up` would do")
    for kind, batch in batches(steps):
        for reason in dict.fromkeys(step.reason for step in batch):
            targets = [step.target for step in batch if step.reason == reason]
            named = abbreviate(targets, topology)
            more = sum(named[name] for name in list(named)[SHOWN_TARGETS:])
            shown = ", ".join([*list(named)[:SHOWN_TARGETS], *([f"… {more} more"] if more else [])])
            table.add_row(kind, str(len(targets)), escape(shown), reason)
    return table


def abbreviate(targets: Sequence[str], topology: Topology) -> dict[str, int]:
    """Names, each with its number of nodes: `sensors[*] (200)` for a whole group of more than two."""
    members = defaultdict(list)
    for node in topology.nodes:
        if node.group:
            members[node.group].append(node.name)
    meant = frozenset(targets)
    whole = {g: names for g, names in members.items() if len(names) > 2 and meant.issuperset(names)}
    short = {name: f"{group}[*] ({len(names)})" for group, names in whole.items() for name in names}
    return dict(Counter(short.get(target, target) for target in targets))
