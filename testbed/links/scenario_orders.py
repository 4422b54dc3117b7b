"""What an incident asks of links, as the orders that `testbed link` gives. The same in every place."""

from collections import defaultdict

from testbed.links.changes import BOTH, Action, Order
from testbed.scenario.model import ONLY, Incident
from testbed.topology.model import ActionKind, Topology

_AS_FILED = {None: Action.RESET, ActionKind.CUT.value: Action.RESTORE}


def link_orders(incident: Incident, topology: Topology) -> list[tuple[Order, tuple[str, ...]]]:
    """Each order with the links that it is for."""
    details, nodes = incident.details, incident.nodes
    directions = tuple(details.get("directions", BOTH))
    match incident.kind:
        case ActionKind.CUT:
            return [(Order(Action.CUT, directions), nodes)]
        case ActionKind.LINK:
            name = details["profile"]
            profile = None if name is None else topology.profile(name)
            return [(Order(Action.SET, directions, profile, dict(details["values"])), nodes)]
        case _ if details.get(ONLY) != ActionKind.LINK:
            return [(Order(_AS_FILED[details.get(ONLY)], directions), nodes)]
    by_profile: defaultdict[str, list[str]] = defaultdict(list)  # shapes go back, cuts stay
    for name in nodes:
        by_profile[topology.node(name).profile].append(name)
    return [
        (Order(Action.SET, profile=topology.profile(profile)), tuple(names))
        for profile, names in by_profile.items()
    ]
