"""An inventory to begin with: one host for each node that belongs on a board. Pure."""

from collections.abc import Sequence

from testbed.backends.field.boards import is_mixed
from testbed.errors import InputError
from testbed.topology.model import Topology

NO_ADDRESS = "192.0.2.{}"  # RFC 5737: nobody has these


def sample_inventory(topology: Topology, source: str, addresses: Sequence[str], user: str) -> str:
    """YAML with comments; addresses go to the nodes in their order."""
    nodes = [node for node in topology.nodes if node.on_board]
    if not nodes:
        raise InputError(
            f"no node of {source} has `place: boards`",
            "say so in the file, or e.g. --set groups.sensors.place=boards",
        )
    if addresses and len(addresses) != len(nodes):
        raise InputError(
            f"{len(addresses)} addresses for {len(nodes)} boards",
            "give one for each, in the order of the nodes",
        )
    given = addresses or [NO_ADDRESS.format(number) for number in range(1, len(nodes) + 1)]
    hosts = [
        f"    {node.name}: {{ansible_host: {address}}}"
        for node, address in zip(nodes, given, strict=True)
    ]
    missing = [] if addresses else ["# Put the boards' own addresses in the place of 192.0.2.x."]
    mixed = is_mixed(topology)
    return "\n".join(
        [
            f"# Boards for {source}: testbed deploy {source} -i THIS_FILE",
            "# A host is named like its node; another name is fine with `testbed_node: NODE`.",
            *missing,
            "boards:",
            "  hosts:",
            *hosts,
            "  vars:",
            f"    ansible_user: {user}",
            "    # ansible_ssh_private_key_file: ~/.ssh/id_ed25519",
            "    # testbed_shape: false            # the boards have real lines (3G sticks): leave these alone",
            "    # testbed_interface: wwan0        # default: the interface with the board's address",
            "    # testbed_time_server: 192.0.2.100  # this machine's address, if chrony serves time here",
            *_uplink(mixed),
            "",
        ]
    )


def _uplink(mixed: bool) -> list[str]:
    """Needed only if some nodes stay on this machine."""
    mark = "" if mixed else "# "
    return [
        f"    {mark}testbed_uplink_interface: eth0            # of this machine, in the boards' network",
        f"    {mark}testbed_uplink_address: 192.0.2.250/24    # a free address there, for the lab's own nodes",
    ]
