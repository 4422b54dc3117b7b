"""The link profiles of a file: its own, beside the built-in ones, and which of them its nodes use."""

from testbed.links.profiles import PROFILES
from testbed.topology.checking import Checking
from testbed.topology.hints import did_you_mean, quoted
from testbed.topology.model import Profile, Shape
from testbed.topology.raw import MAX_PROFILES, RawProfile, RawShape
from testbed.topology.source_map import Path

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
                "nodes on the same kind of line can share a profile",
            )
            raw = {}
        self._own = {name: _profile(checking, name, one) for name, one in raw.items()}
        # Also those that are wrong in themselves: nobody is told that they do not exist.
        self._written = frozenset({*PROFILES, *checking.written("links", "profiles")})

    def check(self, path: Path, name: str | None) -> None:
        """`link:` must name a profile."""
        if name is not None and name not in self._written:
            hint = did_you_mean(name, sorted(self._written))
            self._checking.value(path, f"there is no link profile {quoted(name)}", hint)

    def used(self, names: set[str]) -> tuple[Profile, ...]:
        """The file's own profiles and the built-in ones in use, by name."""
        known = {**PROFILES, **self._own}
        return tuple(known[name] for name in sorted(names & known.keys() | self._own.keys()))


def _profile(checking: Checking, name: str, raw: RawProfile) -> Profile:
    path: Path = ("links", "profiles", name)
    up, down = _merged(raw.both, raw.up), _merged(raw.both, raw.down)
    if checking.shaped.sound(*path):
        negative: dict[Path, list[str]] = {}  # where the jitter is written -> the directions
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
