"""Commands on a lab that is up: link show, set, cut, restore and reset; node crash, stop and start."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from testbed.cli.options import AsJson, Strict
from testbed.cli.tables.links import links_table
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, few
from testbed.lab.links import (
    LinkView,
    change_links,
    known_profile,
    members_of,
    topology_of,
    view_links,
)
from testbed.lab.nodes import order_nodes
from testbed.links.changes import BOTH, DOWN, UP, Action, LinkOrder
from testbed.links.values import EMPTY, NONE, format_values, read_values
from testbed.progress import Note
from testbed.records import LabRecord, find_lab, lab_names
from testbed.topology.diagnostics.hints import did_you_mean, listing, nearest, quoted
from testbed.topology.model import ActionKind

LinkSelectors = Annotated[
    list[str],
    typer.Argument(
        metavar="LINK",
        help="Links by their nodes: a name, 'group[*]', 'group[0..3]' or all. "
        "The lab's name comes first; it is optional if only one lab is up.",
        show_default=False,
    ),
]
OptionalLinkSelectors = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LINK",
        help="Links by their nodes: a name, 'group[*]', 'group[0..3]'. Default: all links. "
        "The lab's name comes first; it is optional if only one lab is up.",
        show_default=False,
    ),
]
NodeSelectors = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE",
        help="Nodes: a name, 'group[*]', 'group[0..3]'. "
        "The lab's name comes first; it is optional if only one lab is up.",
        show_default=False,
    ),
]
OnlyUp = Annotated[bool, typer.Option("--up", help="Only the direction from the node.")]
OnlyDown = Annotated[bool, typer.Option("--down", help="Only the direction to the node.")]
_LINKS_DONE = {"restore": "restored"}  # cut, set and reset are so in every tense
_NODES_DONE = {
    ActionKind.CRASH: "crashed",
    ActionKind.STOP: "stopped",
    ActionKind.START: "started",
}


def register(app: typer.Typer) -> None:
    link = typer.Typer(
        help="Show and change the links of a lab that is up. The run's manifest records each change.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    link.command(epilog="Example: testbed link show demo 'sensors[*]'")(show)
    link.command("set", epilog="Example: testbed link set 'sensors[0..3]' --up --rate 64kbit/s")(
        set_values
    )
    link.command(epilog="Example: testbed link cut broker --down")(cut)
    link.command(epilog="Example: testbed link restore broker")(restore)
    link.command(epilog="Example: testbed link reset all")(reset)
    app.add_typer(link, name="link")
    node = typer.Typer(
        help="Crash, stop and start nodes of a lab, on this machine or on boards. "
        "The run's manifest records each change.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    node.command(epilog="Example: testbed node crash demo broker")(crash)
    node.command(epilog="Example: testbed node stop 'sensors[0..1]'")(stop)
    node.command(epilog="Example: testbed node start demo broker")(start)
    app.add_typer(node, name="node")


def show(
    words: OptionalLinkSelectors = None,
    up: OnlyUp = False,
    down: OnlyDown = False,
    as_json: AsJson = False,
) -> None:
    """Show the current settings and the traffic of links."""
    with Terminal(as_json) as terminal:
        record, selectors = lab_and_selectors(words or [])
        directions = _directions(up, down)
        views = view_links(record, selectors)
        links = [_document(view, directions) for view in views]
        terminal.document({"lab": record.name, "links": links})
        terminal.show(links_table(views, directions))


def set_values(
    words: LinkSelectors,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Set all values of this profile, which is built-in or in the lab's file."
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Rate, e.g. 64kbit/s or 10kB/s; none: no limit.")
    ] = None,
    delay: Annotated[str | None, typer.Option(help="One-way delay, e.g. 200ms.")] = None,
    jitter: Annotated[
        str | None, typer.Option(help="Jitter, at most the delay, e.g. 10ms.")
    ] = None,
    loss: Annotated[str | None, typer.Option(help="Share of lost packets, e.g. 1%.")] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            help="Queue before the link, e.g. 16kB; none: the bytes of one second at the rate."
        ),
    ] = None,
    up: OnlyUp = False,
    down: OnlyDown = False,
    as_json: AsJson = False,
) -> None:
    """Change rate, delay, jitter, loss or queue. Other values stay as they are."""
    with Terminal(as_json) as terminal:
        texts = {"rate": rate, "delay": delay, "jitter": jitter, "loss": loss, "queue": queue}
        values = read_values(texts)
        if not values and profile is None:
            raise InputError(
                "nothing to set", "give --rate, --delay, --jitter, --loss, --queue or --profile"
            )
        record, selectors = lab_and_selectors(words)
        chosen = None if profile is None else known_profile(record, profile)
        order = LinkOrder(Action.SET, _directions(up, down), chosen, values)
        _change(record, selectors, order, terminal)


def cut(
    words: LinkSelectors, up: OnlyUp = False, down: OnlyDown = False, as_json: AsJson = False
) -> None:
    """Drop every packet without notice, as a broken cable does. `restore` brings the settings of the link back."""
    with Terminal(as_json) as terminal:
        _change(*lab_and_selectors(words), LinkOrder(Action.CUT, _directions(up, down)), terminal)


def restore(
    words: LinkSelectors, up: OnlyUp = False, down: OnlyDown = False, as_json: AsJson = False
) -> None:
    """End a cut. The settings from before the cut apply again."""
    with Terminal(as_json) as terminal:
        order = LinkOrder(Action.RESTORE, _directions(up, down))
        _change(*lab_and_selectors(words), order, terminal)


def reset(
    words: LinkSelectors, up: OnlyUp = False, down: OnlyDown = False, as_json: AsJson = False
) -> None:
    """End cuts and restore the settings of the topology file."""
    with Terminal(as_json) as terminal:
        _change(*lab_and_selectors(words), LinkOrder(Action.RESET, _directions(up, down)), terminal)


def _change(
    record: LabRecord, selectors: Sequence[str], order: LinkOrder, terminal: Terminal
) -> None:
    if not selectors:
        raise InputError(
            f"which links of lab {record.name}?",
            f"name nodes or groups, or all; `testbed link show {record.name}` lists them",
        )
    entry = change_links(record, selectors, order, terminal.emit)
    terminal.document({"lab": record.name, "change": entry})
    if entry is None:
        terminal.emit(Note("nothing to change: it is so already"))
    else:
        terminal.show(sentence(entry))


def sentence(entry: dict[str, Any]) -> str:
    """Describe what was done: `cut siren (up and down)`, `set s-0 (up) to rate 64kbit/s`."""
    which = " and ".join(entry["directions"])
    done = (
        f"{_LINKS_DONE.get(entry['action'], entry['action'])} {listing(entry['links'])} ({which})"
    )
    by_direction = {
        direction: _values(shape) for direction, shape in entry.get("shapes", {}).items()
    }
    if len(set(by_direction.values())) == 1:
        values = next(iter(by_direction.values()))
    else:
        values = "; ".join(f"{direction}: {values}" for direction, values in by_direction.items())
    if profile := entry.get("profile"):
        return f"{done} to {profile} ({values})"
    return f"{done} to {values}" if values else done


def _values(shape: dict[str, Any]) -> str:
    texts = format_values(shape).items()
    return ", ".join(f"{name} {NONE if text == EMPTY else text}" for name, text in texts)


def _document(view: LinkView, directions: Sequence[str]) -> dict[str, Any]:
    return {
        "link": view.name,
        "profile": view.profile,
        "behind": view.behind,
        **{direction: _line(view, direction) for direction in directions},
    }


def _line(view: LinkView, direction: str) -> dict[str, Any] | None:
    if view.now is None:
        return None
    direction_state = view.now.direction_state(direction)
    return {
        **asdict(direction_state.shape),
        "queue_limit_bytes": view.queue_limits[direction],
        "cut": direction_state.cut,
        "changed": direction_state.shape != view.configured.direction_state(direction).shape,
        "counts": dict(view.counts.get(direction, {})) or None,
    }


def _directions(up: bool, down: bool) -> tuple[str, ...]:
    return BOTH if up == down else (UP,) if up else (DOWN,)


def crash(arguments: NodeSelectors, as_json: AsJson = False) -> None:
    """Kill a node at once (SIGKILL)."""
    _order_nodes(arguments, ActionKind.CRASH, as_json)


def stop(arguments: NodeSelectors, as_json: AsJson = False) -> None:
    """Stop a node in order (SIGTERM)."""
    _order_nodes(arguments, ActionKind.STOP, as_json)


def start(arguments: NodeSelectors, strict: Strict = False, as_json: AsJson = False) -> None:
    """Start a node that has crashed or was stopped."""
    _order_nodes(arguments, ActionKind.START, as_json, strict)


def _order_nodes(
    arguments: Sequence[str], kind: ActionKind, as_json: bool, strict: bool | None = None
) -> None:
    with Terminal(as_json, strict) as terminal:
        record, selectors = lab_and_selectors(arguments)
        names = order_nodes(record, selectors, kind, terminal.emit)
        terminal.document({"lab": record.name, "action": kind.value, "nodes": names})
        if names:
            terminal.show(f"{_NODES_DONE[kind]} {few(names)}")
        else:
            terminal.emit(Note(f"all of these are {_NODES_DONE[kind]} already"))


def lab_and_selectors(words: Sequence[str]) -> tuple[LabRecord, list[str]]:
    """The first argument is the lab if one of that name is up; else the only lab is used."""
    labs = lab_names()
    if words and words[0] in labs:
        return find_lab(words[0]), list(words[1:])
    if len(labs) != 1:
        near = nearest(words[0], labs) if words else None
        return find_lab(words[0] if near else None), list(
            words
        )  # raises: no such lab, or which one?
    record = find_lab(None)
    if words:
        _check_first(words[0], record)
    return record, list(words)


def _check_first(word: str, record: LabRecord) -> None:
    """A first argument without brackets may be a misspelt name of a lab."""
    members = members_of(topology_of(record))
    if "[" in word or word in members.nodes or word in members.groups:
        return
    if nearest(word, [record.name]) and not nearest(word, members.nodes):
        raise InputError(
            f"{quoted(word)} is neither a lab that is up nor a link of lab {record.name}",
            did_you_mean(word, [record.name]),
        )
