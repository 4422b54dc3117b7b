"""Kawakami 2016 where there are no namespaces: the command goes on without labs and reports it."""

from pathlib import Path

from testbed.cli.papers import kawakami2016 as command
from testbed.cli.terminal import Terminal
from testbed.jsonfiles import read_json
from testbed.links.emulator import Capabilities
from testbed.links.probe import ProbeResult
from testbed.papers import kawakami2016
from testbed.progress import Event, Incomplete

NOTHING = ProbeResult(False, "this kernel has no namespaces", Capabilities(False, False, "no taps"))


class Listening(Terminal):
    """Keeps the events that it gets."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


def test_without_namespaces_there_are_no_labs_and_the_folder_knows_why(places: Path) -> None:
    terminal = Listening()
    command.run_labs(kawakami2016.quick(), places, terminal, look=lambda: NOTHING)
    assert read_json(places / "labs.json") == {"runs": [], "without": NOTHING.reason}
    (missing,) = terminal.events
    assert isinstance(missing, Incomplete)
    assert NOTHING.reason in missing.text
    assert "simulated only" in missing.text
