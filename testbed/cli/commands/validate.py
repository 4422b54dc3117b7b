"""`testbed validate FILE...`: check topology files and scenarios."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from testbed.cli.options import AsJson, Overrides, ScenarioFile, Strict
from testbed.cli.terminal import Terminal
from testbed.progress import Warned
from testbed.recording.disk_estimate import estimate_disk
from testbed.scenario import compile_timeline
from testbed.topology import TopologyErrors, find_likely_mistakes, load
from testbed.topology.diagnostics.hints import counted
from testbed.topology.model import NodeKind, Topology


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed validate topologies/*.yaml")(validate)


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Topology files.")],
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Check topology files and scenarios. Report all errors and likely mistakes with line and column."""
    with Terminal(as_json, strict) as terminal:
        problems: list[dict[str, Any]] = []
        warnings: list[dict[str, Any]] = []
        disk: list[dict[str, Any]] = []
        for file in files:
            try:
                topology = load(file, scenario=scenario, overrides=overrides or ())
                compile_timeline(topology)
            except TopologyErrors as errors:
                problems += errors.as_json()
                terminal.show(Text(str(errors), style="red"))
            else:
                terminal.show(Text(f"{file}: {summary_line(topology)}"))
                disk.append({"file": str(file), **estimate_disk(topology).to_json()})
                for mistake in find_likely_mistakes(topology):
                    warnings.append({"file": str(file), "message": mistake})
                    terminal.emit(Warned(f"{file}: {mistake}"))
        terminal.document(
            {"valid": not problems, "errors": problems, "warnings": warnings, "disk": disk}
        )
        if problems:
            raise typer.Exit(TopologyErrors.exit_code)


def summary_line(topology: Topology) -> str:
    """A topology in one line."""
    counts = [(len(topology.of_kind(kind)), kind) for kind in NodeKind]
    kinds = ", ".join(counted(n, kind) for n, kind in counts if n)
    publications, duration_s = len(compile_timeline(topology)), topology.scenario.lasts_s
    scenario = f"{publications} publications in {duration_s:g} s" if duration_s else "no scenario"
    return f"{topology.name}: {kinds}; {scenario}"
