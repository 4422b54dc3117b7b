"""Which links are meant: by the names of their nodes, as in topology files; `all` means all of them. Pure."""

from collections import Counter
from collections.abc import Sequence

from testbed.errors import InputError
from testbed.topology.model import Topology
from testbed.topology.selectors import Members, SelectorError, Stretch, member, select

ALL = "all"


def members_of(topology: Topology) -> Members:
    """The names that selectors can mean in this lab."""
    names = frozenset(node.name for node in topology.nodes)
    return Members(names, Counter(node.group for node in topology.nodes if node.group))


def select_links(selectors: Sequence[str], topology: Topology) -> tuple[str, ...]:
    """The links meant, each once, in the file's order; InputError for a selector that means none."""
    members = members_of(topology)
    meant: set[str] = set()
    for selector in selectors:
        meant |= _meant(selector, members)
    return tuple(node.name for node in topology.nodes if node.name in meant)


def _meant(selector: str, members: Members) -> frozenset[str]:
    if selector == ALL and ALL not in members.nodes:
        return members.nodes
    try:
        found = select(selector, members)
    except SelectorError as error:
        raise InputError(str(error), error.hint) from error
    if isinstance(found, Stretch):
        return frozenset(member(found.group, index) for index in found.indices)
    return frozenset() if found is None else frozenset({found})
