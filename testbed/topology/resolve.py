"""From the sections of a file to the resolved topology: everything that concerns more than one section."""

from testbed.topology import happenings
from testbed.topology.checking import Checking
from testbed.topology.expand import expand
from testbed.topology.link_deliveries import check_places, method
from testbed.topology.link_profiles import LinkProfiles
from testbed.topology.methods import check_methods
from testbed.topology.model import PREFIX, Capture, Emulator, Node, NodeKind, Topology


def resolve(checking: Checking, name: str) -> Topology:
    """The topology, complete and consistent unless problems were found."""
    file = checking.file
    profiles = LinkProfiles(checking)
    nodes = expand(checking, profiles)
    scenario = happenings.scenario(checking, nodes)
    _check_star(checking, nodes)
    check_places(checking)
    check_methods(checking, nodes, scenario)
    return Topology(
        name=name,
        seed=file.seed,
        profiles=profiles.used({node.profile for node in nodes}),
        nodes=nodes,
        overlay=method(file.overlay),
        delivery=method(file.delivery),
        emulator=Emulator(file.links.emulator),
        scenario=scenario,
        capture=Capture(file.capture.enabled, file.capture.snaplen),
        prefix=PREFIX,
    )


def _check_star(checking: Checking, nodes: tuple[Node, ...]) -> None:
    """One broker in the middle; nothing to say while it is unclear which nodes there are."""
    shaped = checking.shaped
    unclear = not all(shaped.sound(section) for section in ("groups", "nodes", "overlay"))
    if checking.file.overlay.method != "star" or not nodes or unclear:
        return
    brokers = [node for node in nodes if node.kind is NodeKind.BROKER]
    if not any(node.ours for node in nodes):
        return  # a lab of other people's programs
    if not brokers:
        where = "nodes" if "nodes" in checking.written() else "groups"
        checking.key(
            (where,),
            "overlay star needs a broker, and there is none",
            "add `broker: {kind: broker}`",
        )
    elif len(brokers) > 1:
        second = brokers[1]
        path = ("groups", second.group) if second.group else ("nodes", second.name)
        checking.key(
            path,
            f"overlay star needs exactly one broker, and there are {len(brokers)}",
            "keep one, or choose an overlay for several brokers",
        )
