"""The link profiles of a file: its own, beside the built-in ones, and which of them its nodes use."""

from testbed.links.profiles import PROFILES
from testbed.topology.checking import Checking
from testbed.topology.hints import did_you_mean, quoted
from testbed.topology.model import Profile, Shape
from testbed.topology.raw import RawProfile, RawShape

DEFAULT = "lan"


def profiles(checking: Checking) -> dict[str, Profile]:
    """All profiles that the file can name."""
    own = {
        name: _profile(checking, name, raw) for name, raw in checking.file.links.profiles.items()
    }
    return {**PROFILES, **own}


def used(known: dict[str, Profile], names: set[str], checking: Checking) -> tuple[Profile, ...]:
    """The file's own profiles and the built-in ones in use, by name."""
    wanted = names | set(checking.file.links.profiles)
    return tuple(known[name] for name in sorted(wanted))


def check_reference(checking: Checking, path: tuple[str, ...], name: str | None) -> None:
    """`link:` must name a profile."""
    if name is None:
        return
    known = {*PROFILES, *checking.written("links", "profiles")}
    if name not in known:
        hint = did_you_mean(name, sorted(known))
        checking.value(path, f"there is no link profile {quoted(name)}", hint)


def _profile(checking: Checking, name: str, raw: RawProfile) -> Profile:
    directions = {}
    for direction, own in (("up", raw.up), ("down", raw.down)):
        shape = _merged(raw.both, own)
        if shape.jitter_s > shape.delay_s:
            path = ("links", "profiles", name)
            where = next(
                (
                    (*path, part, "jitter")
                    for part, section in ((direction, own), ("both", raw.both))
                    if section.jitter is not None
                ),
                path,
            )
            if checking.shaped.sound(*path):
                checking.value(
                    where,
                    f"{direction}: the jitter is larger than the delay, which would become negative",
                    "make the delay at least as large as the jitter",
                )
        directions[direction] = shape
    return Profile(name, directions["up"], directions["down"], raw.mtu)


def _merged(both: RawShape, own: RawShape) -> Shape:
    values = {**both.model_dump(exclude_none=True), **own.model_dump(exclude_none=True)}
    return Shape(
        values.get("rate"),
        values.get("delay", 0.0),
        values.get("jitter", 0.0),
        values.get("loss", 0.0),
        values.get("queue"),
    )
