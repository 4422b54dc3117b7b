"""`testbed play [LAB]` and `testbed inject [LAB]`: play a scenario, or publish one message, in a lab that is up."""

from dataclasses import asdict
from typing import Annotated

import typer

from testbed.cli.options import AsJson, LabName, ScenarioFile, Speed, Strict
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.lab.inject import inject
from testbed.lab.play import play, replace_scenario, set_speed
from testbed.recording.lateness import sentence
from testbed.records import find_lab
from testbed.topology.units import parse_size


def register(app: typer.Typer) -> None:
    app.command("play", epilog="Example: testbed play demo")(play_scenario)
    app.command(
        "inject", epilog="Example: testbed inject demo --from sensors-1 --topic alerts --priority 5"
    )(inject_message)


def play_scenario(
    name: LabName = None,
    scenario: ScenarioFile = None,
    speed: Speed = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Play the topology's scenario, or a scenario from a file, on a lab that is up."""
    with Terminal(as_json, strict) as terminal:
        record = find_lab(name)
        if scenario is not None:
            replace_scenario(record, scenario)
        if speed is not None:
            set_speed(record, speed)
        terminal.if_interrupted = (
            f"interrupted; the nodes continue the scenario until `testbed down {record.name}`"
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
        typer.Option(metavar="NAME=NUMBER", help="A value in the lab's content space. Repeatable."),
    ] = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Publish one message from a sensor now."""
    with Terminal(as_json, strict) as terminal:
        record = find_lab(name)
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
            f"--value: {text!r} is not a name with a number", "write it like tilt=4.2"
        ) from None
