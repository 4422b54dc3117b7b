"""Drawings as tables and trees for the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

if TYPE_CHECKING:
    from testbed.graphs.forming import Formed, Hop
    from testbed.graphs.plain import Twig
    from testbed.topology.model import Topology


def levels_table(formed: "Formed") -> Table:
    """Who is linked with whom."""
    from testbed.graphs.svg import lists

    names = _names(formed)
    table = Table("level", "bits", "list", title="the Skip Graph", title_justify="left")
    for level in reversed(range(formed.levels)):
        for bits, members in lists(formed.peers, level):
            told = " - ".join(names[peer.number] for peer in members)
            table.add_row(str(level), bits, escape(told))
    return table


def hops_table(formed: "Formed") -> Table:
    """The publication hop by hop."""
    names = _names(formed)
    asked = formed.company.publication
    topic = f" on {asked.topic}" if formed.company.names else ""
    title = f"a publication by {names[asked.publisher]}{topic}"
    table = Table("hop", "messages", title=escape(title), title_justify="left")
    for number in sorted({hop.number for hop in formed.hops}):
        ways = [
            f"{names[hop.src]} → {names[hop.dst]}{_toward(hop)}"
            for hop in formed.hops
            if hop.number == number
        ]
        table.add_row(str(number), escape(", ".join(ways)))
    return table


def _toward(hop: "Hop") -> str:
    """On a map: whether it is on its way to be matched."""
    return f" (to its {hop.toward})" if hop.toward in ("place", "home") else ""


def _names(formed: "Formed") -> dict[int, str]:
    from testbed.graphs.telling import short

    own = formed.company.names
    return {peer.number: own.get(peer.number, short(peer)) for peer in formed.peers}


def plain_tree(topology: "Topology") -> Tree:
    """The core, and what hangs on it."""
    from testbed.graphs.plain import CORE, twigs

    tree = Tree(f"{topology.name}: {CORE}")
    _grow(tree, twigs(topology))
    return tree


def _grow(tree: Tree, hanging: Sequence["Twig"]) -> None:
    for twig in hanging:
        told = f"{twig.named} ({twig.about}) on {twig.profile}"
        _grow(tree.add(escape(told)), twig.behind)


def profiles_table(topology: "Topology") -> Table:
    """What the links do."""
    from testbed.graphs.plain import profiles_in_use

    table = Table("profile", "link", title="links", title_justify="left")
    for name, told in profiles_in_use(topology).items():
        table.add_row(name, told)
    return table
