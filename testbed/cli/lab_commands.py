"""Commands on a lab: up, down, status, play, inject, logs."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from testbed.cli import down_command, loglines, status_command
from testbed.cli.calibration_table import calibration_table
from testbed.cli.file_commands import show_plan
from testbed.cli.options import (
    CALIBRATE_SECONDS,
    AsJson,
    BackendName,
    Calibrate,
    CalibrateSeconds,
    LabName,
    NewName,
    Overrides,
    ScenarioFile,
    Speed,
    TopologyFile,
)
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.events import Note
from testbed.lab import bring_up, inject, lab_status, play
from testbed.lab.guests import save_outputs
from testbed.lab.scenario_file import take_scenario
from testbed.lab.speed import take_speed
from testbed.recording.lateness import sentence
from testbed.records import lab_names, read_manifest, the_lab, the_run
from testbed.topology import load
from testbed.topology.units import parse_size


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed up topologies/demo.yaml --backend netns")(up)
    app.command(epilog=down_command.EPILOG)(down_command.down)
    app.command(epilog=status_command.EPILOG)(status_command.status)
    app.command("play", epilog="Example: testbed play demo")(play_scenario)
    app.command(
        "inject", epilog="Example: testbed inject demo --from sensors-1 --topic alerts --priority 5"
    )(inject_message)
    app.command(epilog="Example: testbed logs demo siren --follow")(logs)


def up(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    backend: BackendName = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    calibrate: Calibrate = False,
    calibrate_seconds: CalibrateSeconds = CALIBRATE_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Start a lab, or bring a running one in line with its file. Returns when all nodes are connected."""
    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; what this command had made was taken back"
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


def play_scenario(
    name: LabName = None,
    scenario: ScenarioFile = None,
    speed: Speed = None,
    as_json: AsJson = False,
) -> None:
    """Play the topology's scenario, or one from a file, on a lab that is up."""
    with Terminal(as_json) as terminal:
        record = the_lab(name)
        if scenario is not None:
            take_scenario(record, scenario)
        if speed is not None:
            take_speed(record, speed)
        terminal.if_interrupted = (
            f"interrupted; the nodes go on with the scenario until `testbed down {record.name}`"
        )
        played = play(record, terminal.emit)
        terminal.document({"run": record.run, **asdict(played)})
        terminal.show(
            f"{played.published} messages published, "
            f"{played.received} of {played.expected} deliveries made",
            *([sentence(played.lateness)] if played.lateness else []),
        )


def inject_message(
    sensor: Annotated[
        str, typer.Option("--from", envvar="TESTBED_INJECT_FROM", help="The sensor that publishes.")
    ],
    name: LabName = None,
    topic: Annotated[str, typer.Option(help="The topic.")] = "alerts",
    priority: Annotated[int, typer.Option(min=1, max=5, help="1 (routine) to 5 (emergency).")] = 5,
    size: Annotated[str, typer.Option(help="Payload, e.g. 200B or 1kB.")] = "200B",
    value: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A value of the lab's space; several times."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let a sensor publish one message now, where it stands."""
    with Terminal(as_json) as terminal:
        record = the_lab(name)
        try:
            payload = parse_size(size)
        except ValueError as error:
            raise InputError(f"--size: {error}", "write it with its unit, e.g. 200B") from error
        values = dict(_named_number(text) for text in value or ())
        identity = inject(record, sensor, topic, priority, payload, terminal.emit, values)
        terminal.document({"lab": record.name, "id": identity})
        terminal.show(f"message {identity} published by {sensor}")


def _named_number(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise InputError(
            f"--value: {text!r} is no name with a number", "write it like tilt=4.2"
        ) from None


def logs(
    name: Annotated[
        str | None, typer.Argument(metavar="LAB|RUN", help="A lab that is up, or a run.")
    ] = None,
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="Only this node.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what nodes logged, in order of time."""
    with Terminal(as_json) as terminal:
        if follow and as_json:
            raise InputError("--follow has no end, --json is one document", "use one of them")
        folder = _logs_folder(name)
        files = loglines.files_of(folder, node)
        if follow:
            with suppress(KeyboardInterrupt):
                for line in loglines.follow(files):
                    terminal.show(loglines.render(line))
            return
        lines = loglines.read(files)
        terminal.document(lines)
        terminal.show(*(loglines.render(line) for line in lines))
        if not lines:
            terminal.emit(Note("nothing logged yet"))


def _logs_folder(name: str | None) -> Path:
    labs = lab_names()
    if name in labs or (name is None and labs):
        lab = the_lab(name)
        save_outputs(lab)
        return lab.run_place.logs
    return the_run(name).logs
