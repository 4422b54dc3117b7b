"""The settings of each link over time: the manifest's profiles, and changes by `testbed link`. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

ALWAYS_NS, NEVER_NS = -(1 << 62), 1 << 62
DIRECTIONS = ("up", "down")
LinkDirection = tuple[str, str]  # a link and the direction in which it is crossed


class LinkSettings(NamedTuple):
    """The settings of one direction of a link from one moment until another."""

    from_ns: int
    until_ns: int
    rate_bps: float | None  # None: no limit
    delay_s: float

    @property
    def byte_s(self) -> float:
        """Transmission time of one byte."""
        return 8 / self.rate_bps if self.rate_bps else 0.0


SettingsOfLinks = Mapping[LinkDirection, tuple[LinkSettings, ...]]  # in the order of time


class PathToCore(NamedTuple):
    """The path from a node to the core (`up`) or back: its own link, and those of the routers that it is behind."""

    node: str
    direction: str
    from_ns: int
    until_ns: int
    routers: tuple[str, ...]  # the nearest to the node first
    delays_s: tuple[float, ...]  # of the node's own link, then of each router's
    bytes_s: tuple[float, ...]


def settings_of_links(
    manifest: Mapping[str, Any],
) -> dict[tuple[str, str], tuple[LinkSettings, ...]]:
    """The settings of all links of a run."""
    topology = manifest["topology"]
    profiles = {profile["name"]: profile for profile in topology["profiles"]}
    changes = sorted(manifest.get("link_changes") or (), key=lambda change: int(change["t_ns"]))
    return {
        (node["name"], direction): _in_time(
            profiles[node["profile"]][direction], _changes_of(changes, node["name"], direction)
        )
        for node in topology["nodes"]
        for direction in DIRECTIONS
    }


def _changes_of(
    changes: Iterable[Mapping[str, Any]], link: str, direction: str
) -> list[tuple[int, Mapping[str, Any] | None]]:
    """The changes of this link with their times; None: reset to the values of the file."""
    found: list[tuple[int, Mapping[str, Any] | None]] = []
    for change in changes:
        if link in change["links"] and direction in change["directions"]:
            if change["action"] == "set":
                found.append((int(change["t_ns"]), change["shapes"][direction]))
            elif change["action"] == "reset":
                found.append((int(change["t_ns"]), None))
    return found


def _in_time(
    filed: Mapping[str, Any], changes: list[tuple[int, Mapping[str, Any] | None]]
) -> tuple[LinkSettings, ...]:
    shapes = [(ALWAYS_NS, dict(filed))]
    for at_ns, values in changes:
        shapes.append((at_ns, {**filed} if values is None else {**shapes[-1][1], **values}))
    ends = [begin for begin, _ in shapes[1:]] + [NEVER_NS]
    return tuple(
        LinkSettings(begin, end, shape["rate_bps"], shape["delay_s"] or 0.0)
        for (begin, shape), end in zip(shapes, ends, strict=True)
    )


def settings_at(history: tuple[LinkSettings, ...], t_ns: int) -> LinkSettings:
    """The settings at this moment."""
    return next(one for one in reversed(history) if one.from_ns <= t_ns)


def paths_to_core(manifest: Mapping[str, Any], settings: SettingsOfLinks) -> list[PathToCore]:
    """The paths of all nodes, a row for each interval with constant settings."""
    nodes = manifest["topology"]["nodes"]
    router = {node["name"]: node.get("router") for node in nodes}
    paths = []
    for node in nodes:
        links = _links_to_core(node["name"], router)
        for direction in DIRECTIONS:
            histories = [settings[link, direction] for link in links]
            begins = sorted({one.from_ns for history in histories for one in history})
            for begin, end in zip(begins, [*begins[1:], NEVER_NS], strict=True):
                then = [settings_at(history, begin) for history in histories]
                paths.append(
                    PathToCore(
                        node["name"],
                        direction,
                        begin,
                        end,
                        tuple(links[1:]),
                        tuple(one.delay_s for one in then),
                        tuple(one.byte_s for one in then),
                    )
                )
    return paths


def _links_to_core(node: str, router: Mapping[str, str | None]) -> list[str]:
    """The node's own link and those of its routers, the nearest first."""
    links = [node]
    while (above := router.get(links[-1])) is not None:
        links.append(above)
    return links


def links_of_hop(src: str, dst: str, router: Mapping[str, str | None]) -> tuple[LinkDirection, ...]:
    """The links from one node to another in their order: up to the core, or to a router of both, and down."""
    up, down = _links_to_core(src, router), _links_to_core(dst, router)
    shared = {*up[1:]} & {*down[1:]}
    return (
        *((link, "up") for link in up if link not in shared),
        *((link, "down") for link in reversed(down) if link not in shared),
    )
