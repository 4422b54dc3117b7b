"""The list of all nodes, from the groups and nodes of the file, numbered in file order, each with its address.

External nodes bring a program of their own; nodes behind a router share its link, as routers behind a router do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nodes.protocol.kinds import OURS
from nodes.protocol.wire import MAX_SUBSCRIPTIONS
from testbed.topology.addresses import address_of
from testbed.topology.diagnostics.hints import did_you_mean, quoted, with_article
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import External, Node, NodeKind
from testbed.topology.names import MAX_NODE_NAME
from testbed.topology.parse.selectors import MemberRange, Members, SelectorError, member, select
from testbed.topology.resolve.brokers import with_brokers
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.interests import subscriptions
from testbed.topology.resolve.links import DEFAULT, LinkProfiles, of_node
from testbed.topology.schema.sections import MAX_NODES, RawGroup, RawHardware, RawMember

# External nodes: their own keys, and their files.


MAX_FILE_BYTES = 64 * 1024
_EXTERNAL_KEYS = ("image", "packages", "command", "env", "files", "port")


def check_external(checking: Checking, path: tuple[str, str], raw: RawMember) -> None:
    """An external node needs an image; any other node has none of these keys."""
    written = checking.written(*path)
    if raw.kind != NodeKind.EXTERNAL:
        for key in (key for key in _EXTERNAL_KEYS if key in written):
            checking.key(
                (*path, key),
                f"{with_article(raw.kind)} has no `{key}`; only external nodes do",
                "remove it, or write `kind: external`",
            )
        return
    if "image" in written and "packages" in written:
        checking.key(
            (*path, "packages"),
            "an image is either named or made of packages, not both",
            "remove `image` or `packages`",
        )
    elif not raw.image and not raw.packages and checking.shaped.sound(*path):
        checking.key(
            path,
            f"{path[1]} has no image",
            "add `image: eclipse-mosquitto:2`, or `packages: [mosquitto]` to have one made",
        )
    if raw.packages and not raw.command and checking.shaped.sound(*path, "command"):
        checking.key(
            path,
            f"{path[1]} has no command: an image made of packages does not define one",
            "add `command:`",
        )
    for inside, source in raw.files.items():
        _check_file(checking, (*path, "files", inside), source)


def external(
    checking: Checking, path: Path, raw: RawMember, node: str, group: str | None
) -> External | None:
    """The program of an external node, with {node} and {group} replaced and its files read."""
    if raw.kind != NodeKind.EXTERNAL:
        return None

    def filled(text: str) -> str:
        return text.replace("{node}", node).replace("{group}", group or node)

    return External(
        image=raw.image,
        packages=tuple(dict.fromkeys(raw.packages)),
        command=tuple(filled(word) for word in raw.command),
        env=tuple((name, filled(value)) for name, value in sorted(raw.env.items())),
        files=tuple(
            (inside, _content(checking, source) or "")
            for inside, source in sorted(raw.files.items())
        ),
        port=raw.port,
    )


def _content(checking: Checking, source: str) -> str | None:
    """The file's text; None if it cannot be read. A pipe or a device is refused, as it might never end."""
    path = checking.folder / source
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        return content.decode() if len(content) <= MAX_FILE_BYTES else None
    except (OSError, ValueError):
        return None


def _check_file(checking: Checking, path: Path, source: str) -> None:
    if _content(checking, source) is None:
        checking.value(
            path,
            f"{checking.folder / source} cannot be read as a text of at most {MAX_FILE_BYTES // 1024} KiB",
            "a relative path begins at the topology file's own folder",
        )


# Nodes behind a router share the router's link.


NONE_KNOWN = "add a node with `kind: router`"
MAX_ROUTERS = 8  # between a node and the core


def place_behind_routers(
    checking: Checking, nodes: tuple[Node, ...], origin: Mapping[str, Path]
) -> tuple[Node, ...]:
    """Give every node the name of its router; members of a group use several routers in turn."""
    file = checking.file
    routers = _Routers(checking, nodes)
    of_path: dict[Path, tuple[str, ...]] = {}
    for section, raws in (("groups", file.groups), ("nodes", file.nodes)):
        for name, raw in raws.items():
            if raw.router is not None:
                of_path[section, name] = routers.meant((section, name, "router"), raw.router)
    placed = []
    for node in nodes:
        chosen = of_path.get(origin[node.name])
        placed.append(replace(node, router=chosen[node.index % len(chosen)]) if chosen else node)
    return _without_cycles(checking, placed, origin)


def _without_cycles(
    checking: Checking, nodes: Sequence[Node], origin: Mapping[str, Path]
) -> tuple[Node, ...]:
    """Nodes whose path to the core ends; routers behind themselves, and paths that are too long, become problems.

    Each cycle is one problem, and each node or group with a path that is too long.
    """
    by_name = {node.name: node for node in nodes}
    wrong: set[Path | frozenset[str]] = set()
    cut: dict[str, Node] = {}
    for node in nodes:
        path = _path_to_core(node, by_name)
        repeated = next((name for name in path if path.count(name) > 1), None)
        if repeated is None and len(path) <= MAX_ROUTERS + 1:
            continue
        cut[node.name] = replace(node, router=None)
        if repeated not in (None, node.name):  # behind a cycle, not part of it
            continue
        where = (*origin[node.name], "router")
        if not wrong.isdisjoint((where, frozenset(path))):
            continue
        wrong |= {where} if repeated is None else {where, frozenset(path)}
        if repeated is None:
            message = (
                f"{node.name} is behind {len(path) - 1} routers; at most {MAX_ROUTERS} are possible"
            )
            checking.value(where, message, "leave some of the routers between it and the core out")
        else:
            message = f"{node.name} is behind itself: {' -> '.join(path)}"
            checking.value(
                where, message, "remove `router` of one of these routers, to connect it to the core"
            )
    return tuple(cut.get(node.name, node) for node in nodes)


def _path_to_core(node: Node, by_name: Mapping[str, Node]) -> list[str]:
    """The node and its routers, as far as the first one that comes twice, or one more than there may be."""
    path = [node.name]
    while node.router is not None and len(set(path)) == len(path) <= MAX_ROUTERS + 1:
        node = by_name[node.router]
        path.append(node.name)
    return path


class _Routers:
    """The routers of a file."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._by_name = {node.name: node for node in nodes}
        self._known = [node.name for node in nodes if node.kind is NodeKind.ROUTER]
        self._members = Members(frozenset(self._by_name), checking.counts)

    def meant(self, where: Path, selector: str) -> tuple[str, ...]:
        """The routers of this member's selector; none if it is invalid."""
        try:
            found = select(selector, self._members)
        except SelectorError as error:
            self._checking.value(where, str(error), error.hint if self._known else NONE_KNOWN)
            return ()
        names = [found] if isinstance(found, str) else _names(found)
        for node in (self._by_name[name] for name in names if name in self._by_name):
            if node.kind is not NodeKind.ROUTER:
                self._checking.value(
                    where,
                    f"{quoted(node.name)} is {with_article(node.kind)}, not a router",
                    did_you_mean(selector, self._known) if self._known else NONE_KNOWN,
                )
                return ()
        return tuple(name for name in names if name in self._by_name)


def _names(members: MemberRange | None) -> list[str]:
    return [member(members.group, index) for index in members.indices] if members else []


def expand(checking: Checking, profiles: LinkProfiles) -> tuple[Node, ...]:
    """All nodes; mistakes become problems."""
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
    return with_brokers(checking, placed)


def _unnumbered(checking: Checking, profiles: LinkProfiles) -> Iterator[tuple[Path, Node]]:
    """Each node with its path in the file, in file order."""
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
    # Behind a router, the file's default profile is for the router's link, not for the short link to the router.
    short = raw.router is not None and raw.kind != NodeKind.ROUTER
    links = (raw,) if short else sources
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
    """The place of the node; a default applies only to nodes that can run on a board."""
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
    check_external(checking, path, raw)
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
                "the publications of a sensor belong to `scenario`",
            )


def _check_defaults(checking: Checking, profiles: LinkProfiles) -> None:
    defaults = checking.file.defaults
    profiles.check(("defaults", "link"), defaults.link)
    for kind in NodeKind:
        own: RawHardware = getattr(defaults, kind)
        profiles.check(("defaults", kind.value, "link"), own.link)
