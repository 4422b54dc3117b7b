"""`testbed graph --overlay METHOD`: a drawn example of an overlay, made by the nodes' own code."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.table import Table

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import InputError

if TYPE_CHECKING:  # other commands need not wait until all of these are loaded
    from testbed.graphs.example import Example, Formed

MOST_NODES = 200

Method = Annotated[
    str,
    typer.Option("--overlay", metavar="METHOD", help="sg-tbps, psg-tbps, ... (docs/overlays.md)."),
]
Publishers = Annotated[int, typer.Option(min=1, help="Nodes that publish; the first one does.")]
Subscribers = Annotated[int, typer.Option(min=1, help="Nodes that subscribe.")]
Priority = Annotated[int, typer.Option(min=1, max=5, help="Of the publication.")]
Seed = Annotated[int, typer.Option(help="Of the membership vectors.")]
Parameter = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; several times."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Draw it into this SVG file, too."),
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Example: testbed graph --overlay psg-tbps --subscribers 12 --set multicast=flood -o psg.svg"
    )(graph)


def graph(
    overlay: Method,
    publishers: Publishers = 3,
    subscribers: Subscribers = 7,
    priority: Priority = 5,
    seed: Seed = 2,
    parameter: Parameter = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Form a small overlay in virtual time, and follow one publication through it."""
    from testbed.graphs.example import Example
    from testbed.graphs.svg import svg

    with Terminal(as_json) as terminal:
        parameters = _parameters(parameter or [])
        example = Example(overlay, publishers, subscribers, priority, seed, parameters)
        formed = _form(example)
        if output is not None:
            try:
                output.write_text(svg(formed))
            except OSError as error:
                raise InputError(
                    f"{output} cannot be written: {error.strerror}", "name another file with -o"
                ) from error
        terminal.document(document(formed))
        terminal.show(levels_table(formed), hops_table(formed), outcome(formed))
        if output is not None:
            terminal.show(f"drawn: {output}")


def _parameters(given: list[str]) -> dict[str, Any]:
    parameters = {}
    for one in given:
        key, separator, value = one.partition("=")
        if not separator or not key:
            raise InputError(
                f"--set {one!r} is not NAME=VALUE", "for example --set multicast=flood"
            )
        parameters[key] = yaml.safe_load(value)
    return parameters


def _form(example: "Example") -> "Formed":
    from nodes.overlay.tbps import TOPIC_METHODS
    from testbed.graphs.example import form

    if example.method not in TOPIC_METHODS:
        raise InputError(
            f"there is no overlay method {example.method!r}",
            f"there are {', '.join(TOPIC_METHODS)}",
        )
    if len(example.numbers) > MOST_NODES:
        raise InputError(
            f"{len(example.numbers)} nodes cannot be drawn; at most {MOST_NODES}",
            "fewer --publishers or --subscribers",
        )
    try:
        return form(example)
    except ValueError as error:
        raise InputError(
            str(error), "docs/overlays.md lists the parameters of each method"
        ) from error


def document(formed: "Formed") -> dict[str, Any]:
    """For programs."""
    example = formed.example
    return {
        "overlay": example.method,
        "priority": example.priority,
        "nodes": [
            {
                "number": peer.number,
                "role": peer.role.name.lower(),
                "vector": f"{peer.vector:016x}",
                "right": list(peer.right),
                "hops": formed.reached.get(peer.number),
            }
            for peer in formed.peers
        ],
        "messages": [{"hop": hop.number, "src": hop.src, "dst": hop.dst} for hop in formed.hops],
    }


def levels_table(formed: "Formed") -> Table:
    """Who is linked with whom."""
    from testbed.graphs.svg import lists, name

    table = Table("level", "bits", "list", title="the Skip Graph", title_justify="left")
    for level in reversed(range(formed.levels)):
        for bits, members in lists(formed.peers, level):
            table.add_row(str(level), bits, " - ".join(name(peer) for peer in members))
    return table


def hops_table(formed: "Formed") -> Table:
    """The publication hop by hop."""
    from testbed.graphs.svg import name

    names = {peer.number: name(peer) for peer in formed.peers}
    title = f"a publication by {names[1]}"
    table = Table("hop", "messages", title=title, title_justify="left")
    for number in sorted({hop.number for hop in formed.hops}):
        ways = [f"{names[h.src]} → {names[h.dst]}" for h in formed.hops if h.number == number]
        table.add_row(str(number), ", ".join(ways))
    return table


def outcome(formed: "Formed") -> str:
    """In one sentence."""
    example, hops = formed.example, formed.reached.values()
    return (
        f"priority {example.priority}: {len(formed.hops)} messages, {len(hops)} of {example.subscribers} subscribers "
        f"reached after {sum(hops) / max(len(hops), 1):.2f} hops on average"
    )
