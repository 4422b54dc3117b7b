"""`testbed events [LAB|RUN]`: everything that happens, in the order of time; as JSON lines, or for people."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from testbed.cli.commands import logs
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, few
from testbed.lab.external_nodes import save_outputs
from testbed.places import RunPlace
from testbed.recording.events import (
    IN_MANIFEST,
    KINDS,
    PLAY,
    Deliveries,
    Event,
    EventFilter,
    EventQueue,
    ManifestEvents,
    journal_event,
    log_event,
)
from testbed.records import (
    did_you_mean,
    find_lab,
    find_run,
    is_run_unfinished,
    lab_names,
    read_manifest,
)
from testbed.topology.model import from_json

HOLD_NS = 1_000_000_000  # so long nodes and commands may need to log an event
STYLES = {"publication": "green", "loss": "bold red", "fault": "bold yellow", "mark": "bold blue"}

Name = Annotated[str | None, typer.Argument(metavar="LAB|RUN", help="A lab that is up, or a run.")]
Follow = Annotated[
    bool,
    typer.Option("--follow", "-f", help="Show new events as they occur, until the lab is down."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help=f"Only events of this kind: {', '.join(KINDS)}. Repeatable."),
]
Nodes = Annotated[
    list[str] | None, typer.Option("--node", help="Only events of this node. Repeatable.")
]
Levels = Annotated[
    list[int] | None,
    typer.Option("--level", min=1, max=5, help="Only messages of this level. Repeatable."),
]
AsLines = Annotated[
    bool,
    typer.Option(
        "--json", envvar="TESTBED_JSON", help="Print one JSON object per line for each event."
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed events demo --follow --json --kind loss --kind fault")(
        events
    )


def events(
    name: Name = None,
    follow: Follow = False,
    kind: Kinds = None,
    node: Nodes = None,
    level: Levels = None,
    as_json: AsLines = False,
) -> None:
    """Show the events of a run in order of time: publications, receptions, losses, faults, link changes,
    connections, marks and operations on the lab.

    With --follow, the command ends when the lab ends (exit code 0) or with Ctrl-C (130).
    """
    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; the lab goes on"
        place = _the_place(name)
        wanted = _wanted(place, kind or [], node or [], level or [])
        for event in read_events(place, follow=follow):
            if event in wanted:
                terminal.line(event)
                terminal.show(render(event))


def read_events(place: RunPlace, *, follow: bool) -> Iterator[Event]:
    """All events of a run so far; with `follow`, also those to come, each when nothing earlier can come any more."""
    tail, manifest_events, row = logs.Tail(), ManifestEvents(), EventQueue()
    deliveries = Deliveries(from_json(read_manifest(place)["topology"]))
    journalled, last_ns = False, 0
    while True:
        goes_on = is_run_unfinished(place)  # checked first, so that events until the end are read
        manifest = read_manifest(place)
        now_ns = time.time_ns()
        steps = tail.fresh([place.journal])
        journalled |= any(step["step"] == PLAY for step in steps)
        row.add(journal_event(step) for step in steps if step["step"] not in IN_MANIFEST)
        lines = [log_event(line) for line in tail.fresh(logs.files_of(place.logs, None))]
        for line in lines:
            deliveries.note(line)
            last_ns = max(last_ns, int(line["t"]))
        row.add(lines)
        row.add(manifest_events.fresh(manifest, journalled=journalled))
        if not goes_on:
            row.add(deliveries.lost(_end_ns(manifest, last_ns)))
        if not goes_on or not follow:
            yield from row.until(None)
            return
        yield from row.until(now_ns - HOLD_NS)
        time.sleep(logs.POLL_S)


def _end_ns(manifest: dict[str, Any], last_ns: int) -> int:
    """The time of the end of the run: after all its events."""
    play = manifest.get("play") or {}
    return max(int(play.get("end_ns", 0)), last_ns)


def _the_place(name: str | None) -> RunPlace:
    labs = lab_names()
    if name in labs or (name is None and labs):
        lab = find_lab(name)
        save_outputs(lab)
        return lab.run_place
    return find_run(name)


def _wanted(place: RunPlace, kinds: list[str], nodes: list[str], levels: list[int]) -> EventFilter:
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"no events are called {kind!r}", did_you_mean(kind, [*KINDS]))
    known = [node["name"] for node in read_manifest(place)["topology"]["nodes"]]
    for node in nodes:
        if node not in known:
            raise InputError(
                f"no node named {node!r} in run {place.run}", did_you_mean(node, known)
            )
    return EventFilter(frozenset(kinds), frozenset(nodes), frozenset(levels))


def render(event: Event) -> Text:
    """One line for people."""
    rest = {name: value for name, value in event.items() if name != "kind"}
    if rest["node"] is None:
        targets = rest.pop("targets", None) or rest.pop("links", None) or []
        rest["node"] = few(targets) or "-"
    shown = logs.render(rest)
    shown.stylize(STYLES.get(event["kind"], ""))
    return shown
