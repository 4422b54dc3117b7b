"""`testbed run FILE` and `testbed simulate FILE`: a whole run, in a lab or in virtual time, with its report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from analysis.spark.local_java import LocalJava
from testbed.backends.common.names import SIMULATED
from testbed.cli.measurement import Measuring, analyze_and_show, start_ahead
from testbed.cli.options import (
    CALIBRATE_SECONDS,
    AsJson,
    Calibrate,
    CalibrateSeconds,
    NewName,
    NoReport,
    Overrides,
    RunBackendName,
    ScenarioFile,
    Speed,
    Strict,
    TopologyFile,
)
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, NameTaken
from testbed.lab.down import bring_down
from testbed.lab.play import play
from testbed.lab.simulate import SERVICE_S, simulate
from testbed.lab.up import bring_up
from testbed.records import lab_names
from testbed.topology import load
from testbed.topology.model import Topology
from testbed.topology.units import DURATION, parse_duration

Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        max=2**63 - 1,
        help="Replace the seed of the file: another trial of the same experiment.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed run topologies/demo.yaml")(run)
    app.command("simulate", epilog="Example: testbed simulate topologies/demo.yaml")(simulate_file)


def run(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    speed: Speed = None,
    seed: Seed = None,
    backend: RunBackendName = None,
    calibrate: Calibrate = False,
    calibrate_seconds: CalibrateSeconds = CALIBRATE_SECONDS,
    no_report: NoReport = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Run a topology file: start the lab, play the scenario, end the lab, analyze the captures, write the report."""
    with Terminal(as_json, strict) as terminal:
        terminal.if_interrupted = "interrupted; this command removed what it had created"
        topology = _loaded(file, name, seed, scenario, with_speed(overrides, speed))
        if backend == SIMULATED:
            if calibrate:
                raise InputError("simulated links need no calibration", "leave --calibrate out")
            _simulate_and_show(topology, file, terminal, scenario=scenario, no_report=no_report)
            return
        thorough_s = calibrate_seconds if calibrate else None
        if topology.name in lab_names():
            raise NameTaken(
                f"a lab named {topology.name!r} is up already, and `run` starts a new lab",
                f"`testbed play {topology.name}`, or `testbed down {topology.name}`, or --name",
            )
        with LocalJava() as java:
            try:
                record = bring_up(
                    topology,
                    file,
                    backend,
                    terminal.emit,
                    thorough_s=thorough_s,
                    scenario=scenario,
                )
                terminal.if_interrupted = (
                    f"interrupted; the lab was taken down; its captures are in {record.run_folder}"
                )
                play(record, terminal.emit)
                start_ahead(java, no_report=no_report)  # nothing is timed any more
            finally:
                if topology.name in lab_names():
                    bring_down(topology.name, terminal.emit)
            measuring = Measuring(java=java)
            analyze_and_show(record.run_place, terminal, measuring, no_report=no_report)


def simulate_file(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    speed: Speed = None,
    seed: Seed = None,
    service_time: Annotated[
        str, typer.Option(help="Processor time of a node for one message.")
    ] = DURATION.write(SERVICE_S),
    no_report: NoReport = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Run a topology file in virtual time: the nodes' own algorithms on modelled links. The result is reproducible."""
    with Terminal(as_json, strict) as terminal:
        terminal.if_interrupted = "interrupted; this command removed what it had created"
        try:
            service_s = parse_duration(service_time)
        except ValueError as error:
            raise InputError(
                f"--service-time: {error}", "write it with its unit, e.g. 1ms"
            ) from error
        topology = _loaded(file, name, seed, scenario, with_speed(overrides, speed))
        _simulate_and_show(topology, file, terminal, service_s, scenario, no_report)


def with_speed(overrides: Sequence[str] | None, speed: float | None) -> list[str]:
    """`--speed` is short for setting the file's `scenario.speed`."""
    return [*(overrides or ()), *([] if speed is None else [f"scenario.speed={speed!r}"])]


def _loaded(
    file: Path,
    name: str | None,
    seed: int | None,
    scenario: Path | None,
    overrides: Sequence[str],
) -> Topology:
    """The file's topology, with another seed if one is wanted: a further trial of the same experiment."""
    topology = load(file, name=name, scenario=scenario, overrides=overrides)
    return topology if seed is None else replace(topology, seed=seed)


def _simulate_and_show(
    topology: Topology,
    file: Path,
    terminal: Terminal,
    service_s: float = SERVICE_S,
    scenario: Path | None = None,
    no_report: bool = False,
) -> None:
    terminal.if_interrupted = "interrupted; this command removed what it had created"
    with LocalJava() as java:
        # Virtual time does not depend on how busy the machine is.
        start_ahead(java, no_report=no_report)
        place = simulate(topology, file, terminal.emit, service_s, scenario)
        analyze_and_show(place, terminal, Measuring(java=java), no_report=no_report)
