"""`testbed graph`: a topology drawn, or the overlay that its brokers form, or an overlay that is made up."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.topology import load
from testbed.topology.diagnostics.hints import did_you_mean
from testbed.topology.model import NodeKind, Topology

if TYPE_CHECKING:
    from testbed.graphs.brokers import Selection
    from testbed.graphs.scenario import Scenario
    from testbed.graphs.simulate import Hop, SimulatedOverlay
    from testbed.graphs.topology_tree import TreeEntry
    from testbed.topology.model import Topology


# Drawings as tables and trees for the terminal.


def levels_table(simulated: "SimulatedOverlay") -> Table:
    """The lists of each level."""
    from testbed.graphs.overlay_svg import lists

    names = _names(simulated)
    table = Table("level", "bits", "list", title="the Skip Graph", title_justify="left")
    for level in reversed(range(simulated.levels)):
        for bits, members in lists(simulated.peers, level):
            text = " - ".join(names[peer.number] for peer in members)
            table.add_row(str(level), bits, escape(text))
    return table


def hops_table(simulated: "SimulatedOverlay") -> Table:
    """The publication hop by hop."""
    names = _names(simulated)
    asked = simulated.scenario.publication
    topic = f" on {asked.topic}" if simulated.scenario.names else ""
    title = f"a publication by {names[asked.publisher]}{topic}"
    table = Table("hop", "messages", title=escape(title), title_justify="left")
    for number in sorted({hop.number for hop in simulated.hops}):
        ways = [
            f"{names[hop.src]} → {names[hop.dst]}{_toward(hop)}"
            for hop in simulated.hops
            if hop.number == number
        ]
        table.add_row(str(number), escape(", ".join(ways)))
    return table


def _toward(hop: "Hop") -> str:
    """On a map: the point that the message is routed to for matching."""
    return f" (to its {hop.toward})" if hop.toward in ("place", "home") else ""


def _names(simulated: "SimulatedOverlay") -> dict[int, str]:
    from testbed.graphs.describe import short

    own = simulated.scenario.names
    return {peer.number: own.get(peer.number, short(peer)) for peer in simulated.peers}


def plain_tree(topology: "Topology") -> Tree:
    """The core with its routers and nodes."""
    from testbed.graphs.topology_tree import CORE, tree_entries

    tree = Tree(f"{topology.name}: {CORE}")
    _add_entries(tree, tree_entries(topology))
    return tree


def _add_entries(tree: Tree, hanging: Sequence["TreeEntry"]) -> None:
    for entry in hanging:
        text = f"{entry.named} ({entry.about}) on {entry.profile}"
        _add_entries(tree.add(escape(text)), entry.behind)


def profiles_table(topology: "Topology") -> Table:
    """The link profiles in use."""
    from testbed.graphs.topology_tree import profiles_in_use

    table = Table("profile", "link", title="links", title_justify="left")
    for name, text in profiles_in_use(topology).items():
        table.add_row(name, text)
    return table


MOST_NODES = 200
PUBLISHERS, SUBSCRIBERS, PRIORITY, SEED = 3, 7, 5, 2  # of an example overlay

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="A topology file. The command draws the overlay of its brokers or, without one, its nodes and links.",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--overlay",
        metavar="METHOD",
        help="Overlay method, e.g. sg-tbps or zorder-map (docs/explanation/overlays.md), instead of that of FILE; "
        "without FILE, the command draws an example overlay.",
    ),
]
Plain = Annotated[
    bool,
    typer.Option("--plain", help="Draw nodes, links and routers, even if FILE has an overlay."),
]
Topic = Annotated[str | None, typer.Option(help="With FILE: the topic of the publication.")]
Sensor = Annotated[
    str | None,
    typer.Option("--from", metavar="SENSOR", help="With FILE: the sensor that publishes."),
]
Priority = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=5,
        help="Priority of the publication. Default: that of the most urgent publication of FILE, else 5.",
    ),
]
Publishers = Annotated[
    int | None,
    typer.Option(min=1, help=f"Without FILE: number of publishers. Default: {PUBLISHERS}."),
]
Subscribers = Annotated[
    int | None,
    typer.Option(min=1, help=f"Without FILE: number of subscribers. Default: {SUBSCRIBERS}."),
]
Seed = Annotated[
    int | None,
    typer.Option(help=f"Without FILE: seed of the membership vectors. Default: {SEED}."),
]
Parameter = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method. Repeatable."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Also write the drawing to this SVG file."),
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples: testbed graph topologies/demo.yaml -o demo.svg; "
        "testbed graph topologies/kochi-landslide.yaml --topic alerts/aki --overlay sg-tbps; "
        "testbed graph --overlay psg-tbps --subscribers 12 --set multicast=flood -o psg.svg"
    )(graph)


def graph(
    file: File = None,
    overlay: MethodName = None,
    plain: Plain = False,
    topic: Topic = None,
    sensor: Sensor = None,
    priority: Priority = None,
    publishers: Publishers = None,
    subscribers: Subscribers = None,
    seed: Seed = None,
    parameter: Parameter = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Draw a topology, or an overlay of brokers with the path of one publication, formed in virtual time."""
    with Terminal(as_json) as terminal:
        of_brokers = {"topic": topic, "from": sensor, "plain": plain or None}
        made_up = {"publishers": publishers, "subscribers": subscribers, "seed": seed}
        if file is None:
            _refuse(of_brokers, "is for the brokers of a topology file", "name the file")
            scenario = _example(overlay, publishers, subscribers, priority, seed, parameter)
            _show_overlay(scenario, output, terminal)
            return
        _refuse(made_up, "is for overlays that are made up", f"{file} says all of it")
        topology = load(file)
        several = len(topology.of_kind(NodeKind.BROKER)) > 1
        if plain or (overlay is None and not several):
            why = "--plain draws none" if plain else f"{topology.name} has none between brokers"
            asked = {
                **of_brokers,
                "plain": None,
                "overlay": overlay,
                "priority": priority,
                "set": parameter,
            }
            _refuse(asked, f"belongs to an overlay, and {why}", "leave it out")
            _show_plain(topology, output, terminal)
            return
        if not several:
            raise InputError(
                f"{topology.name} has fewer than two brokers, and an overlay {overlay} needs two",
                f"`testbed graph --overlay {overlay}` draws an example",
            )
        from testbed.graphs.brokers import Selection

        scenario = _broker_scenario(
            topology, overlay, parameter, Selection(topic, sensor, priority)
        )
        _show_overlay(scenario, output, terminal)


def _refuse(options: dict[str, Any], why: str, hint: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} {why}", hint)


# What is drawn


def _example(
    method: str | None,
    publishers: int | None,
    subscribers: int | None,
    priority: int | None,
    seed: int | None,
    parameter: list[str] | None,
) -> "Scenario":
    from testbed.graphs.scenario import Example

    if method is None:
        raise InputError(
            "there is nothing to draw",
            "name a topology file, or draw an example overlay: `testbed graph --overlay sg-tbps`",
        )
    _check_method(method)
    return Example(
        method,
        publishers or PUBLISHERS,
        subscribers or SUBSCRIBERS,
        priority or PRIORITY,
        SEED if seed is None else seed,
        _parameters(parameter or []),
    ).scenario()


def _broker_scenario(
    topology: Topology, overlay: str | None, parameter: list[str] | None, asked: "Selection"
) -> "Scenario":
    from testbed.graphs.brokers import broker_scenario, choose_publication

    method = overlay or topology.overlay.method
    _check_method(method)
    own = dict(topology.overlay.parameters) if method == topology.overlay.method else {}
    parameters = {**own, **_parameters(parameter or [])}
    return broker_scenario(topology, choose_publication(topology, asked), method, parameters)


def _check_method(method: str) -> None:
    from nodes.overlay.methods import TOPIC_METHODS

    if method not in TOPIC_METHODS:
        raise InputError(
            f"there is no overlay method {method!r}", did_you_mean(method, TOPIC_METHODS)
        )


def _parameters(given: list[str]) -> dict[str, Any]:
    parameters = {}
    for one in given:
        key, separator, value = one.partition("=")
        if not separator or not key:
            raise InputError(
                f"--set {one!r} is not NAME=VALUE", "write it like --set multicast=flood"
            )
        parameters[key] = yaml.safe_load(value)
    return parameters


# How it is shown


def _show_overlay(scenario: "Scenario", output: Path | None, terminal: Terminal) -> None:
    from testbed.graphs.describe import document, outcome
    from testbed.graphs.overlay_svg import svg
    from testbed.graphs.simulate import simulate

    if len(scenario.topics) > MOST_NODES:
        raise InputError(
            f"{len(scenario.topics)} nodes cannot be drawn; at most {MOST_NODES}",
            "`--plain` draws them as groups"
            if scenario.names
            else "fewer --publishers or --subscribers",
        )
    try:
        simulated = simulate(scenario)
    except ValueError as error:
        raise InputError(
            str(error), "docs/explanation/overlays.md lists the parameters of each method"
        ) from error
    _write(output, svg(simulated))
    terminal.document(document(simulated))
    terminal.show(levels_table(simulated), hops_table(simulated), outcome(simulated))
    _print_path(output, terminal)


def _show_plain(topology: Topology, output: Path | None, terminal: Terminal) -> None:
    from testbed.graphs.topology_tree import document, plain_svg

    _write(output, plain_svg(topology))
    terminal.document(document(topology))
    terminal.show(plain_tree(topology), profiles_table(topology))
    _print_path(output, terminal)


def _write(output: Path | None, drawing: str) -> None:
    if output is None:
        return
    try:
        output.write_text(drawing)
    except OSError as error:
        raise InputError(
            f"{output} cannot be written: {error.strerror}", "name another file with -o"
        ) from error


def _print_path(output: Path | None, terminal: Terminal) -> None:
    if output is not None:
        terminal.show(f"drawn: {output}")
