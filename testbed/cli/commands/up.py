"""`testbed up FILE`: start a lab, or bring a running one in line with its file."""

from dataclasses import asdict
from typing import Annotated

import typer

from testbed.cli.commands.plan import show_plan
from testbed.cli.options import (
    CALIBRATE_SECONDS,
    AsJson,
    BackendName,
    Calibrate,
    CalibrateSeconds,
    NewName,
    Overrides,
    ScenarioFile,
    Strict,
    TopologyFile,
)
from testbed.cli.tables.links import calibration_table
from testbed.cli.terminal import Terminal
from testbed.lab.status import lab_status
from testbed.lab.up import bring_up
from testbed.records import read_manifest
from testbed.topology import load


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed up topologies/demo.yaml --backend netns")(up)


def up(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    backend: BackendName = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the steps; change nothing.")
    ] = False,
    calibrate: Calibrate = False,
    calibrate_seconds: CalibrateSeconds = CALIBRATE_SECONDS,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Start a lab, or change a running lab to match its file. The command returns when all nodes are connected."""
    with Terminal(as_json, strict) as terminal:
        terminal.if_interrupted = "interrupted; this command removed what it had created"
        topology = load(file, name=name, scenario=scenario, overrides=overrides or ())
        thorough_s = calibrate_seconds if calibrate else None
        if dry_run:
            show_plan(topology, file, backend, terminal)
            return
        record = bring_up(
            topology, file, backend, terminal.emit, thorough_s=thorough_s, scenario=scenario
        )
        measured = read_manifest(record.run_place)["calibration"]
        terminal.document({**asdict(lab_status(record.name)), "calibration": measured})
        if calibrate:
            terminal.show(calibration_table(measured))
        terminal.show(
            f"lab {record.name} is up: {len(topology.nodes)} nodes on {record.backend}; "
            f"captures go to {record.run_folder}",
            f"next: testbed play {record.name}, testbed status {record.name}, "
            f"testbed down {record.name}",
        )
