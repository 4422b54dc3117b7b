"""`testbed replay --from-capture`: the application messages of captures, published again in a lab."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.events import Note, StageEnded, StageStarted, Warned
from testbed.jsonfiles import read_json
from testbed.lab.replay import Replay
from testbed.recording.from_capture import read_priorities, scripted
from testbed.topology import load
from testbed.topology.model import Scenario

STAGE = "reading the captures"


def captured_replay(
    captures: Sequence[str],
    file: Path | None,
    overrides: Sequence[str],
    priorities: Sequence[str],
    name: str | None,
    terminal: Terminal,
) -> Replay:
    """What was captured there, on the lab of this file, whose own scenario is not played."""
    from analysis.application_messages import application_messages
    from analysis.errors import AnalysisError

    if file is None:
        raise InputError(
            "--from-capture needs a lab whose sensors publish", "name its file with --on FILE"
        )
    levels = read_priorities(priorities)
    topology = load(file, name=name, overrides=overrides)
    terminal.emit(StageStarted(STAGE))
    try:
        found = application_messages(captures, _numbers(captures))
    except AnalysisError as error:
        raise InputError(error.message, error.hint) from error
    terminal.emit(StageEnded(STAGE))
    script, notes = scripted(found.messages, topology, levels)
    for note in notes:
        terminal.emit(Note(note))
    if found.incomplete:
        terminal.emit(
            Warned(f"{found.incomplete} messages are left out: no capture has all of them")
        )
    scenario = Scenario(duration_s=script.lasts_s, settle_s=topology.scenario.settle_s)
    about = {"of": [*captures], "as": "captured", "messages": len(script.actions), "notes": notes}
    return Replay(replace(topology, scenario=scenario), script, file, None, about)


def _numbers(captures: Sequence[str]) -> dict[int, str]:
    """Which node has which number, if the captures are those of a run."""
    known: dict[int, str] = {}
    for path in captures:
        folder = Path(path)
        for manifest in (folder / "run.json", folder.parent / "run.json"):
            document = read_json(manifest)
            if isinstance(document, dict) and isinstance(document.get("topology"), dict):
                known |= {node["number"]: node["name"] for node in document["topology"]["nodes"]}
    return known
