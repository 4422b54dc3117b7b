"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

TopologyFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A topology file, e.g. topologies/demo.yaml.")
]
ScenarioFile = Annotated[
    Path | None,
    typer.Option(
        "--scenario",
        metavar="FILE",
        help="A file with the scenario to play, instead of the topology's `scenario`.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        envvar="TESTBED_SET",
        help="Replace a value of the file, e.g. delivery.method=fifo, nodes.siren.link=3g-384k, "
        "scenario.events[0].publish.size=1kB. Repeatable.",
    ),
]
Speed = Annotated[
    float | None,
    typer.Option(
        "--speed",
        min=0.001,
        max=1_000,
        help="Play the scenario faster by this factor, e.g. 20. Links and nodes keep their speed.",
    ),
]
LabName = Annotated[
    str | None,
    typer.Argument(metavar="LAB", help="The lab's name. Optional if only one lab is up."),
]
RunName = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="The run's id, folder or lab. Default: the newest run in captures/.",
    ),
]
NewName = Annotated[
    str | None, typer.Option("--name", help="The lab's name. Default: the name in the file.")
]
BackendName = Annotated[
    str | None,
    typer.Option(
        "--backend", help="docker or netns. Default: the best that this machine supports."
    ),
]
RunBackendName = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help="docker, netns, or simulated (virtual time, as `testbed simulate`). "
        "Default: the best that this machine supports.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        envvar="TESTBED_JSON",
        help="Print one JSON document on stdout and all other output on stderr.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        envvar="TESTBED_STRICT",
        help="Also exit with code 3 after warnings that are otherwise accepted, e.g. of a busy machine.",
    ),
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Measure each link profile in use for --calibrate-seconds before the scenario. "
        "Without this option, testbed takes a quick measurement.",
    ),
]
NoReport = Annotated[
    bool,
    typer.Option(
        "--no-report",
        help="Do not write report.html. `testbed report RUN` writes it later, without another analysis.",
    ),
]
CALIBRATE_SECONDS = 5.0
CalibrateSeconds = Annotated[
    float,
    typer.Option(
        min=1.0,
        max=600.0,
        help="With --calibrate: duration of the TCP measurement in each direction.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="A Spark cluster that can read the files, spark://HOST:PORT, or local[4] for four cores of this machine. "
        "Default: the session of `testbed spark start` if there is one, else all cores of this machine.",
    ),
]
