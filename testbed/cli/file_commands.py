"""Commands that only read a topology file: validate, plan, schema."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from testbed.backends.choice import known_backend, make_backend
from testbed.cli.options import AsJson, BackendName, NewName, Overrides, ScenarioFile, TopologyFile
from testbed.cli.terminal import Terminal
from testbed.cli.timeline_table import timeline_table
from testbed.events import Warned, ignore
from testbed.lab.refusals import refuse_another_lab
from testbed.lab.up import as_numbered
from testbed.places import LabPlace
from testbed.plan import Actual, Step, batches, plan_up
from testbed.records import load_lab
from testbed.scenario import compile_timeline
from testbed.scenario.outline import outline
from testbed.topology import TopologyErrors, doubts, json_schema, load, scenario_schema
from testbed.topology.hints import counted
from testbed.topology.model import NodeKind, Topology

SHOWN_TARGETS = 8


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed validate topologies/*.yaml")(validate)
    app.command(epilog="Example: testbed plan topologies/demo.yaml")(plan)
    app.command(epilog="Example: testbed schema > topology.schema.json")(schema)


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Topology files.")],
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Check topology files and scenarios; all problems at once, with line and column, and what is hardly meant."""
    with Terminal(as_json) as terminal:
        problems: list[dict[str, Any]] = []
        warnings: list[dict[str, Any]] = []
        for file in files:
            try:
                topology = load(file, scenario=scenario, overrides=overrides or ())
                compile_timeline(topology)
            except TopologyErrors as errors:
                problems += errors.as_json()
                terminal.show(Text(str(errors), style="red"))
            else:
                terminal.show(Text(f"{file}: {summary_line(topology)}"))
                for doubt in doubts(topology):
                    warnings.append({"file": str(file), "message": doubt})
                    terminal.emit(Warned(f"{file}: {doubt}"))
        terminal.document({"valid": not problems, "errors": problems, "warnings": warnings})
        if problems:
            raise typer.Exit(TopologyErrors.exit_code)


def summary_line(topology: Topology) -> str:
    """A topology in one line."""
    counts = [(len(topology.of_kind(kind)), kind) for kind in NodeKind]
    kinds = ", ".join(counted(n, kind) for n, kind in counts if n)
    publications, duration_s = len(compile_timeline(topology)), topology.scenario.lasts_s
    scenario = f"{publications} publications in {duration_s:g} s" if duration_s else "no scenario"
    return f"{topology.name}: {kinds}; {scenario}"


def plan(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    backend: BackendName = None,
    as_json: AsJson = False,
) -> None:
    """Show what `up` would do now, step by step, and what happens in the scenario. Changes nothing."""
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
    terminal.document(
        {
            "lab": topology.name,
            "steps": [{"kind": s.kind, "target": s.target, "reason": s.reason} for s in steps],
            "timeline": [row.to_json() for row in outline(topology)],
        }
    )
    terminal.show(
        plan_table(steps, topology)
        if steps
        else f"lab {topology.name} is as the file asks; nothing to do"
    )
    if topology.scenario.publish or topology.scenario.actions:
        terminal.show(timeline_table(topology, in_few_words))


def plan_table(steps: tuple[Step, ...], topology: Topology) -> Table:
    """One row for steps that differ only in their target; whole groups are named as such."""
    table = Table("step", "how many", "targets", "why", title="what `up` would do")
    for kind, batch in batches(steps):
        for reason in dict.fromkeys(step.reason for step in batch):
            targets = [step.target for step in batch if step.reason == reason]
            named = in_few_words(targets, topology)
            more = sum(named[name] for name in list(named)[SHOWN_TARGETS:])
            shown = ", ".join([*list(named)[:SHOWN_TARGETS], *([f"… {more} more"] if more else [])])
            table.add_row(kind, str(len(targets)), escape(shown), reason)
    return table


def in_few_words(targets: Sequence[str], topology: Topology) -> dict[str, int]:
    """Names, and for how many nodes each stands: `sensors[*] (200)` for a whole group of more than two."""
    members = defaultdict(list)
    for node in topology.nodes:
        if node.group:
            members[node.group].append(node.name)
    meant = frozenset(targets)
    whole = {g: names for g, names in members.items() if len(names) > 2 and meant.issuperset(names)}
    short = {name: f"{group}[*] ({len(names)})" for group, names in whole.items() for name in names}
    return dict(Counter(short.get(target, target) for target in targets))


def schema(
    scenario: Annotated[
        bool, typer.Option("--scenario", help="Of files that hold only a scenario.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of topology files (for editors)."""
    with Terminal(as_json=True) as terminal:
        terminal.document(scenario_schema() if scenario else json_schema())
