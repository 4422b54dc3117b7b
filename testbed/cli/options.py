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
        help="Instead of what the file says, e.g. delivery.method=fifo, nodes.siren.link=3g-384k, "
        "scenario.events[0].publish.size=1kB. Several times.",
    ),
]
Speed = Annotated[
    float | None,
    typer.Option(
        "--speed",
        min=0.001,
        max=1_000,
        help="Play the scenario so many times as fast, e.g. 20; links and nodes keep their pace.",
    ),
]
LabName = Annotated[
    str | None, typer.Argument(metavar="LAB", help="A lab's name; not needed if only one is up.")
]
RunName = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="A run's id, folder or lab; without it the newest in captures/.",
    ),
]
NewName = Annotated[
    str | None, typer.Option("--name", help="Name of the lab, instead of the file's.")
]
BackendName = Annotated[
    str | None,
    typer.Option("--backend", help="docker or netns; without it the best this machine offers."),
]
RunBackendName = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help="docker, netns, or simulated (virtual time, as `testbed simulate`); "
        "without it the best this machine offers.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        envvar="TESTBED_JSON",
        help="Print one JSON document on stdout, all else on stderr.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        envvar="TESTBED_STRICT",
        help="Exit code 3 also after warnings that are otherwise accepted, e.g. of a busy machine.",
    ),
]
Calibrate = Annotated[
    bool,
    typer.Option(
        "--calibrate",
        help="Measure each link profile in use thoroughly before the lab is handed over "
        "(a quick look is taken always).",
    ),
]
NoReport = Annotated[
    bool,
    typer.Option(
        "--no-report",
        help="Measure only: `testbed report RUN` writes report.html later, without another analysis.",
    ),
]
CALIBRATE_SECONDS = 5.0
CalibrateSeconds = Annotated[
    float,
    typer.Option(min=1.0, max=600.0, help="With --calibrate: seconds of TCP in each direction."),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="A Spark cluster, spark://HOST:PORT, that sees the files; or local[4] for four cores of this machine. "
        "Without it, Spark that `testbed spark start` keeps ready, else all cores of this machine.",
    ),
]
