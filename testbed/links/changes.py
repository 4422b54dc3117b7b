"""Links while the lab runs: the state of each, and how an order (set, cut, restore, reset) changes it. Pure.

A cut direction keeps its shape. Values that an order does not name stay as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from testbed.errors import InputError
from testbed.links.emulator import Capabilities, choose
from testbed.topology.diagnostics.hints import listing
from testbed.topology.model import Emulator, Profile, Shape, Topology
from testbed.topology.units import DURATION

UP, DOWN = "up", "down"
BOTH = (UP, DOWN)
_HAS_TBF = Capabilities(netem=False, tbf=True)


class Action(StrEnum):
    """What can be done to a link."""

    SET = "set"
    CUT = "cut"
    RESTORE = "restore"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class DirectionState:
    """One direction of a link as it is now."""

    shape: Shape
    cut: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is sent to the keeper."""
        return {**asdict(self.shape), "cut": self.cut}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "DirectionState":
        """The inverse of `to_json`."""
        shape = {name: value[name] for name in value if name != "cut"}
        return cls(Shape(**shape), bool(value.get("cut", False)))


@dataclass(frozen=True, slots=True)
class LinkState:
    """Both directions as they are now."""

    up: DirectionState
    down: DirectionState

    @classmethod
    def of(cls, profile: Profile) -> "LinkState":
        """As configured in the topology file."""
        return cls(DirectionState(profile.up), DirectionState(profile.down))

    def direction_state(self, direction: str) -> DirectionState:
        """The state of one direction."""
        return self.up if direction == UP else self.down


LinkStates = Mapping[str, LinkState]


@dataclass(frozen=True, slots=True)
class LinkOrder:
    """A change of some links. With `set`: a profile's values, and single values (fields of Shape) before them."""

    action: Action
    directions: tuple[str, ...] = BOTH
    profile: Profile | None = None
    values: Mapping[str, float | int | None] = field(default_factory=dict)

    def shapes(self) -> dict[str, dict[str, Any]]:
        """Direction -> the values that it gets, only those that the order names."""
        profile = self.profile
        bases = {UP: profile.up, DOWN: profile.down} if profile else {}
        return {
            direction: {**(asdict(bases[direction]) if bases else {}), **self.values}
            for direction in self.directions
        }


def configured_links(topology: Topology) -> dict[str, LinkState]:
    """The state of each link as the topology file configures it."""
    profiles = {profile.name: LinkState.of(profile) for profile in topology.profiles}
    return {node.name: profiles[node.profile] for node in topology.nodes}


def apply_order(
    order: LinkOrder, now: LinkStates, configured: LinkStates, emulator: str
) -> dict[str, LinkState]:
    """The links in `now` that the order changes, with their new states.

    InputError, before anything is done, if a new state is impossible for a link.
    """
    after = {name: _after(order, link, configured[name]) for name, link in now.items()}
    if order.action is Action.SET:
        _refuse_negative_delays(after, order.directions)
        if emulator == Emulator.TBF:
            _refuse_more_than_rates(after, order.directions)
    return {name: link for name, link in after.items() if link != now[name]}


def _after(order: LinkOrder, now: LinkState, configured: LinkState) -> LinkState:
    shapes = order.shapes()

    def direction_state(direction: str) -> DirectionState:
        before = now.direction_state(direction)
        match order.action:
            case Action.SET:
                return replace(before, shape=replace(before.shape, **shapes[direction]))
            case Action.CUT:
                return replace(before, cut=True)
            case Action.RESTORE:
                return replace(before, cut=False)
            case Action.RESET:
                return configured.direction_state(direction)

    return replace(now, **{direction: direction_state(direction) for direction in order.directions})


def _refuse_negative_delays(links: LinkStates, directions: Iterable[str]) -> None:
    for name, link in links.items():
        for direction in directions:
            shape = link.direction_state(direction).shape
            if shape.jitter_s > shape.delay_s:
                raise InputError(
                    f"{name} {direction}: a jitter of {DURATION.write(shape.jitter_s)} is larger than "
                    f"the delay of {DURATION.write(shape.delay_s)}, which would become negative",
                    "give --delay and --jitter together, the delay at least as large",
                )


def _refuse_more_than_rates(links: LinkStates, directions: Iterable[str]) -> None:
    """Refuse what `up` refuses."""
    shapes = [
        link.direction_state(direction).shape for link in links.values() for direction in directions
    ]
    try:
        choose(Emulator.TBF, shapes, _HAS_TBF)
    except InputError as error:
        raise InputError(
            error.message,
            "give only --rate and --queue, or restart the lab with `emulator: relay` in its file",
        ) from error


def find_differences(now: LinkStates, configured: LinkStates) -> dict[str, str]:
    """Links that are not as the file says: name -> `cut` or `changed`."""
    return {
        name: "cut" if link.up.cut or link.down.cut else "changed"
        for name, link in now.items()
        if name in configured and link != configured[name]
    }


def still_changed(record: Iterable[Mapping[str, Any]]) -> list[str]:
    """Links that, by the manifest's record, may not be as the file says: changed, and not wholly reset since."""
    links: dict[str, None] = {}
    for entry in record:
        if entry["action"] != Action.RESET:
            links.update(dict.fromkeys(entry["links"]))
        elif len(entry["directions"]) == len(BOTH):
            for name in entry["links"]:
                links.pop(name, None)
    return list(links)


def describe_differences(differences: Mapping[str, str]) -> str:
    """One sentence on links that are not as the file says; nothing if there are none."""
    if not differences:
        return ""
    each = listing(f"{name} {how}" for name, how in differences.items())
    links = "1 link is" if len(differences) == 1 else f"{len(differences)} links are"
    return f"{links} not as the file says: {each}"
