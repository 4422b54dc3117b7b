"""Groups and nodes of the file to the list of all nodes, numbered in file order, each with its address."""

from collections.abc import Iterator
from dataclasses import replace

from nodes.kinds import OURS
from nodes.wire import MAX_SUBSCRIPTIONS
from testbed.topology.areas import subscriptions
from testbed.topology.checking import Checking
from testbed.topology.chosen_homes import place_at_homes
from testbed.topology.guests import check_guest, external
from testbed.topology.hints import quoted, with_article
from testbed.topology.link_deliveries import of_node
from testbed.topology.link_profiles import DEFAULT, LinkProfiles
from testbed.topology.model import Node, NodeKind
from testbed.topology.names import MAX_NODE_NAME
from testbed.topology.numbering import address_of
from testbed.topology.raw import MAX_NODES, RawGroup, RawHardware, RawMember
from testbed.topology.routers import place_behind_routers
from testbed.topology.selectors import member
from testbed.topology.source_map import Path


def expand(checking: Checking, profiles: LinkProfiles) -> tuple[Node, ...]:
    """All nodes; whatever is wrong with them goes to the problems."""
    file = checking.file
    _check_defaults(checking, profiles)
    if not file.groups and not file.nodes:
        if checking.shaped.sound("groups") and checking.shaped.sound("nodes"):
            checking.key(
                (), "there are no nodes", "add `nodes:` with a broker; see topologies/minimal.yaml"
            )
        return ()
    total = len(file.nodes) + sum(group.count for group in file.groups.values())
    if total > MAX_NODES:
        checking.key(
            ("groups",) if file.groups else ("nodes",),
            f"{total:,} nodes are too many: at most {MAX_NODES:,}",
            "lower a `count`",
        )
        return ()
    nodes: dict[str, Node] = {}
    origin: dict[str, Path] = {}
    for path, node in _unnumbered(checking, profiles):
        if node.name in nodes:
            other = checking.document.source.key(origin[node.name]).line
            checking.key(
                path,
                f"two nodes would be called {quoted(node.name)}; the other is on line {other}",
                "rename one; the members of a group are called <group>-0, <group>-1, ...",
            )
            continue
        number = len(nodes) + 1
        nodes[node.name] = replace(node, number=number, address=address_of(number))
        origin[node.name] = path
    for name in file.groups.keys() & file.nodes.keys():
        checking.key(
            ("nodes", name),
            f"a group and a node are both called {quoted(name)}",
            "rename one of them",
        )
    placed = place_behind_routers(checking, tuple(nodes.values()), origin)
    return place_at_homes(checking, placed)


def _unnumbered(checking: Checking, profiles: LinkProfiles) -> Iterator[tuple[Path, Node]]:
    """Each node with the path it comes from, in file order: whichever section stands first comes first."""
    file = checking.file
    sections = [name for name in checking.written() if name in ("groups", "nodes")]
    for section in sections:
        if section == "nodes":
            for name, raw in file.nodes.items():
                path = ("nodes", name)
                profiles.check((*path, "link"), raw.link)
                _check_member(checking, path, raw)
                node = _node(checking, raw, name)
                yield path, replace(node, external=external(checking, path, raw, name, None))
        else:
            for name, group in file.groups.items():
                path = ("groups", name)
                profiles.check((*path, "link"), group.link)
                _check_member(checking, path, group)
                yield from ((path, node) for node in _members(checking, path, name, group))


def _members(checking: Checking, path: Path, name: str, group: RawGroup) -> Iterator[Node]:
    longest = member(name, group.count - 1)
    if len(longest) > MAX_NODE_NAME:
        checking.key(
            path,
            f"{quoted(longest)} is too long for a name: at most {MAX_NODE_NAME} characters",
            "shorten the group's name",
        )
        return
    places = group.at or ()
    if len(places) > 1 and len(places) != group.count and checking.shaped.sound(*path, "count"):
        checking.value(
            (*path, "at"),
            f"{len(places)} places for {group.count} nodes",
            "give one place for all, or exactly one for each",
        )
        places = ()
    for index in range(group.count):
        place = places[index % len(places)] if places else None
        plain = _node(checking, group, member(name, index))
        yield replace(
            plain,
            group=name,
            index=index,
            at=place,
            external=external(checking, path, group, plain.name, name),
        )


def _node(checking: Checking, raw: RawMember, name: str) -> Node:
    defaults = checking.file.defaults
    own: RawHardware = getattr(defaults, raw.kind)
    sources = (raw, own, defaults)
    # Behind a router the long way is the router's; the short one to it is not meant by the defaults.
    links = (raw,) if raw.router is not None else sources
    return Node(
        name=name,
        number=0,
        kind=NodeKind(raw.kind),
        profile=next((s.link for s in links if s.link), DEFAULT),
        topics=tuple(dict.fromkeys(raw.topics)),
        tags=tuple(dict.fromkeys(raw.tags)),
        at=getattr(raw, "at", None),
        platform=next((s.platform for s in sources if s.platform), None),
        board=next((s.board for s in sources if s.board), None),
        place=_place(raw, own, defaults),
        delivery=of_node(checking, raw),
    )


def _place(raw: RawMember, own: RawHardware, defaults: RawHardware) -> str | None:
    """What can go to a board goes there by default, too; the rest stays here."""
    if raw.kind not in OURS or raw.router is not None:
        return None
    return next((source.place for source in (raw, own, defaults) if source.place), None)


def _check_place(checking: Checking, path: tuple[str, str], raw: RawMember) -> None:
    if raw.place is None:
        return
    if raw.kind not in OURS:
        checking.key(
            (*path, "place"),
            f"{with_article(raw.kind)} cannot be on a board",
            "brokers, sensors and subscribers can",
        )
    elif raw.router is not None:
        checking.key(
            (*path, "place"),
            "a node behind a router cannot be on a board",
            "a board has a link of its own: leave out `router` or `place`",
        )


def _check_member(checking: Checking, path: tuple[str, str], raw: RawMember) -> None:
    if not checking.shaped.sound(*path, "kind"):
        return
    check_guest(checking, path, raw)
    _check_place(checking, path, raw)
    if raw.kind == NodeKind.SUBSCRIBER:
        wanted = len(set(raw.topics)) + len(subscriptions(raw))
        sound = checking.shaped.sound(*path, "topics") and checking.shaped.sound(*path, "subscribe")
        if not wanted and sound:
            checking.key(path, f"{path[1]} subscribes to nothing", "add `topics: [alerts]`")
        elif wanted > MAX_SUBSCRIPTIONS:
            checking.key(
                (*path, "topics" if raw.topics else "subscribe"),
                f"a node can want at most {MAX_SUBSCRIPTIONS:,} topics",
                "share them among several subscribers",
            )
        return
    for key in ("topics", "subscribe"):
        if getattr(raw, key):
            checking.key(
                (*path, key),
                f"{with_article(raw.kind)} has no `{key}`; only subscribers do",
                "what a sensor publishes is said in `scenario`",
            )


def _check_defaults(checking: Checking, profiles: LinkProfiles) -> None:
    defaults = checking.file.defaults
    profiles.check(("defaults", "link"), defaults.link)
    for kind in NodeKind:
        own: RawHardware = getattr(defaults, kind)
        profiles.check(("defaults", kind.value, "link"), own.link)
