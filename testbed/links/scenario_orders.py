"""Translate a scenario's fault on links into the orders of `testbed link`. The same for every backend."""

from collections import defaultdict

from testbed.links.changes import BOTH, Action, LinkOrder
from testbed.scenario.model import ONLY, TimedAction
from testbed.topology.model import ActionKind, Topology

_UNDO_ACTIONS = {None: Action.RESET, ActionKind.CUT.value: Action.RESTORE}


def link_orders(action: TimedAction, topology: Topology) -> list[tuple[LinkOrder, tuple[str, ...]]]:
    """Each order with the links that it changes."""
    details, nodes = action.details, action.nodes
    directions = tuple(details.get("directions", BOTH))
    match action.kind:
        case ActionKind.CUT:
            return [(LinkOrder(Action.CUT, directions), nodes)]
        case ActionKind.LINK:
            name = details["profile"]
            profile = None if name is None else topology.profile(name)
            return [(LinkOrder(Action.SET, directions, profile, dict(details["values"])), nodes)]
        case _ if details.get(ONLY) != ActionKind.LINK:
            return [(LinkOrder(_UNDO_ACTIONS[details.get(ONLY)], directions), nodes)]
    by_profile: defaultdict[str, list[str]] = defaultdict(list)  # shapes go back, cuts stay
    for name in nodes:
        by_profile[topology.node(name).profile].append(name)
    return [
        (LinkOrder(Action.SET, profile=topology.profile(profile)), tuple(names))
        for profile, names in by_profile.items()
    ]
