"""The link of each node: its profile, and the delivery method on it."""

from collections.abc import Iterator

from nodes.plugins import PluginError
from nodes.protocol.kinds import EDGE
from testbed.topology.diagnostics.hints import did_you_mean, quoted, with_article
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Method, NodeKind, Profile, Shape
from testbed.topology.profiles import PROFILES, REPAIR
from testbed.topology.resolve.checking import Checking
from testbed.topology.schema.sections import (
    MAX_PROFILES,
    RawDelivery,
    RawHardware,
    RawMember,
    RawOverlay,
    RawProfile,
    RawShape,
)

DEFAULT = "lan"


class LinkProfiles:
    """The profiles that the nodes of one file can name."""

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        raw = checking.file.links.profiles
        if len(raw) > MAX_PROFILES:
            checking.key(
                ("links", "profiles"),
                f"{len(raw):,} link profiles are too many: at most {MAX_PROFILES:,}",
                "nodes on the same kind of link can share a profile",
            )
            raw = {}
        self._own = {name: _profile(checking, name, one) for name, one in raw.items()}
        self._broken: set[str] = set()  # of other packages; they are reported where they are named
        # Invalid profiles, too: they are not reported as missing.
        self._written = frozenset({*PROFILES, *checking.written("links", "profiles")})

    def check(self, path: Path, name: str | None) -> None:
        """`link:` must name a profile."""
        if name is None or name in self._own:
            return
        if name not in self._written:
            hint = did_you_mean(name, sorted(self._written))
            self._checking.value(path, f"there is no link profile {quoted(name)}", hint)
        elif name in PROFILES:
            try:
                PROFILES[name]
            except PluginError as error:
                self._checking.value(path, str(error), REPAIR)
                self._broken.add(name)

    def used(self, names: set[str]) -> tuple[Profile, ...]:
        """The file's own profiles and the built-in ones in use, by name."""
        return tuple(
            self._own.get(name) or PROFILES[name]
            for name in sorted((names & PROFILES.keys() | self._own.keys()) - self._broken)
        )


def _profile(checking: Checking, name: str, raw: RawProfile) -> Profile:
    path: Path = ("links", "profiles", name)
    up, down = _merged(raw.both, raw.up), _merged(raw.both, raw.down)
    if checking.shaped.sound(*path):
        negative: dict[Path, list[str]] = {}  # path of the jitter -> directions
        for direction, own, shape in (("up", raw.up, up), ("down", raw.down, down)):
            if shape.jitter_s > shape.delay_s:
                section = direction if own.jitter is not None else "both"
                negative.setdefault((*path, section, "jitter"), []).append(direction)
        for where, directions in negative.items():
            checking.value(
                where,
                f"{' and '.join(directions)}: the jitter is larger than the delay, which would become negative",
                "make the delay at least as large as the jitter",
            )
    return Profile(name, up, down, raw.mtu)


def _merged(both: RawShape, own: RawShape) -> Shape:
    values = {**both.model_dump(exclude_none=True), **own.model_dump(exclude_none=True)}
    return Shape(
        values.get("rate"),
        values.get("delay", 0.0),
        values.get("jitter", 0.0),
        values.get("loss", 0.0),
        values.get("queue"),
        values.get("burst"),
    )


# The delivery method of each node's link: its own, its group's, its kind's, the general one, or the lab's.


_KEY = "delivery"
_HINT = "remove it; a link's method is that of the sensor or subscriber at its end, or the lab's"


def method(raw: RawOverlay | RawDelivery) -> Method:
    """The chosen method in the form of the resolved topology."""
    return Method(raw.method, tuple(sorted(raw.parameters.items())))


def of_node(checking: Checking, raw: RawMember) -> Method | None:
    """The method of this node's link; None for nodes other than sensors and subscribers."""
    if raw.kind not in EDGE:
        return None
    file = checking.file
    own: RawHardware = getattr(file.defaults, raw.kind)
    sources = (raw, own, file.defaults)
    chosen = next((source.delivery for source in sources if _written(source)), file.delivery)
    return method(chosen)


def places(checking: Checking) -> Iterator[tuple[Path, RawDelivery]]:
    """Every valid choice of a method in the file, the lab's first."""
    file = checking.file
    found: list[tuple[Path, RawHardware]] = [(("defaults",), file.defaults)]
    found += [(("defaults", kind.value), getattr(file.defaults, kind)) for kind in NodeKind]
    found += [(("groups", name), group) for name, group in file.groups.items()]
    found += [(("nodes", name), node) for name, node in file.nodes.items()]
    if checking.shaped.sound(_KEY):
        yield (_KEY,), file.delivery
    for path, raw in found:
        if _written(raw) and checking.shaped.sound(*path, _KEY):
            yield (*path, _KEY), raw.delivery


def check_places(checking: Checking) -> None:
    """Only sensors and subscribers have a method of their own."""
    file = checking.file
    for kind in NodeKind:
        _check_kind(checking, ("defaults", kind.value), getattr(file.defaults, kind), kind)
    for section, members in (("groups", file.groups), ("nodes", file.nodes)):
        for name, raw in members.items():
            if checking.shaped.sound(section, name, "kind"):
                _check_kind(checking, (section, name), raw, raw.kind)


def _check_kind(checking: Checking, path: tuple[str, str], raw: RawHardware, kind: str) -> None:
    if kind not in EDGE and _KEY in checking.written(*path):
        checking.key((*path, _KEY), f"{with_article(kind)} has no `{_KEY}` of its own", _HINT)


def _written(raw: RawHardware) -> bool:
    return _KEY in raw.model_fields_set
