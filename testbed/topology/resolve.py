"""From the sections of a file to the resolved topology: everything that concerns more than one section."""

from dataclasses import replace

from testbed.topology import happenings
from testbed.topology.actions import profiles_of
from testbed.topology.areas import space_of, with_interests
from testbed.topology.brokers import check_brokers
from testbed.topology.checking import Checking
from testbed.topology.expand import expand
from testbed.topology.expecting import expected
from testbed.topology.hazards import hazard
from testbed.topology.link_deliveries import check_places, method
from testbed.topology.link_profiles import LinkProfiles
from testbed.topology.methods import check_methods
from testbed.topology.model import PREFIX, Capture, Emulator, Topology


def resolve(checking: Checking, name: str) -> Topology:
    """The topology, complete and consistent unless problems were found."""
    file = checking.file
    profiles = LinkProfiles(checking)
    nodes = expand(checking, profiles)
    scenario = happenings.scenario(checking, nodes, profiles)
    scenario = replace(scenario, hazard=hazard(checking, nodes))
    space = space_of(checking, nodes)
    nodes = with_interests(checking, nodes, scenario, space)
    scenario = replace(scenario, expect=expected(checking, nodes))
    check_brokers(checking, nodes)
    check_places(checking)
    check_methods(checking, nodes, scenario, space)
    return Topology(
        name=name,
        seed=file.seed,
        profiles=profiles.used({node.profile for node in nodes} | profiles_of(scenario)),
        nodes=nodes,
        overlay=method(file.overlay),
        delivery=method(file.delivery),
        emulator=Emulator(file.links.emulator),
        scenario=scenario,
        capture=Capture(file.capture.enabled, file.capture.snaplen),
        prefix=PREFIX,
        space=space.dimensions if space else (),
        deadlines=tuple(sorted((int(level), s) for level, s in file.deadlines.items())),
    )
