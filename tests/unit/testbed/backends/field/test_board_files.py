"""Configurations, links and variables of boards, without any board."""

from dataclasses import replace
from pathlib import Path

from testbed.backends.common.names import has_boards, local_backend
from testbed.backends.field.board_files import BoardFiles, host_variables, link_of
from testbed.backends.field.boards import Board, Uplink, at_their_addresses
from testbed.backends.field.deployment import BoardPaths
from testbed.backends.field.provisioning import interface_with
from testbed.jsonfiles import read_json
from testbed.lab.start.provenance import tcp_of_lab
from testbed.places import LabPlace, RunPlace
from testbed.topology import load_text
from testbed.topology.model import CongestionControl, Topology

BOARDS = (
    Board("slope", "slope", "192.0.2.1", "192.0.2.1"),
    Board("siren", "siren", "192.0.2.2", "192.0.2.2"),
)


def placed(broker: str) -> Topology:
    text = f"""
name: field
nodes:
  broker: {broker}
  slope: {{kind: sensor, link: mvno-128k, place: boards}}
  siren: {{kind: subscriber, topics: [alerts], place: boards}}
"""
    return at_their_addresses(load_text(text, "field.yaml"), BOARDS)


def files(topology: Topology, folder: Path) -> BoardFiles:
    lab = LabPlace(folder / "field")
    lab.folder.mkdir()
    return BoardFiles(folder / "files", lab, RunPlace(folder / "run"), topology)


def test_a_node_on_a_board_has_paths_of_the_board_and_addresses_of_all(tmp_path: Path) -> None:
    topology = placed("{kind: broker}")
    made = files(topology, tmp_path)
    made.write_node(BOARDS[0], "eth0")
    config = read_json(tmp_path / "files" / "hosts" / "slope" / "node.json")
    assert config is not None
    board_paths = BoardPaths("field")
    assert (config["control"], config["log"]) == (board_paths.control, board_paths.log)
    assert config["journal"] == "/var/lib/testbed/field/journal"
    assert [broker["host"] for broker in config["brokers"]] == [topology.node("broker").address]
    assert (tmp_path / "files").stat().st_mode & 0o077 == 0


def test_a_node_on_a_board_sets_the_congestion_control_itself(tmp_path: Path) -> None:
    topology = replace(placed("{kind: broker}"), tcp=CongestionControl.RENO)
    files(topology, tmp_path).write_node(BOARDS[0], "eth0")
    config = read_json(tmp_path / "files" / "hosts" / "slope" / "node.json")
    assert config is not None
    assert config["tcp"] == "reno"
    # The playbook refuses a board that does not allow it.
    assert host_variables(BOARDS[0], "eth0", topology, None)["testbed_tcp"] == "reno"
    own = placed("{kind: broker}")
    assert host_variables(BOARDS[0], "eth0", own, None)["testbed_tcp"] == ""


def test_the_manifest_does_not_take_this_machines_congestion_control_for_that_of_boards(
    tmp_path: Path,
) -> None:
    (tmp_path / "tcp_congestion_control").write_text("cubic\n")
    mixed = tcp_of_lab(placed("{kind: broker}"), tmp_path)
    assert (mixed.name, mixed.reason) == (
        "cubic",
        "the default of this machine's kernel; nodes on boards use that of their board",
    )
    topology = load_text("nodes: {slope: {kind: broker, place: boards}}", "x.yaml")
    alone = tcp_of_lab(at_their_addresses(topology, BOARDS[:1]), tmp_path)
    assert (alone.name, alone.reason) == ("unknown", "the default of each board's kernel")


def test_only_traffic_of_the_lab_is_shaped(tmp_path: Path) -> None:
    topology = placed("{kind: broker}")
    link = link_of(topology, topology.node("slope"))
    listed = files(topology, tmp_path).links(BOARDS[0], "eth0", link)
    assert listed["peers"] == ["192.0.2.2", topology.prefix]
    assert listed["up"]["rate_bps"] == 128_000
    assert listed["interface"] == "eth0"


def test_a_lab_entirely_on_boards_has_only_boards_as_peers(tmp_path: Path) -> None:
    topology = load_text(
        "nodes: {a: {kind: broker, place: boards}, b: {kind: sensor, place: boards}}", "x.yaml"
    )
    boards = [Board("a", "a", "192.0.2.1", "x"), Board("b", "b", "192.0.2.2", "y")]
    topology = at_their_addresses(topology, boards)
    link = link_of(topology, topology.node("a"))
    assert files(topology, tmp_path).links(boards[0], "eth0", link)["peers"] == ["192.0.2.2"]


def test_boards_get_a_route_to_the_nodes_on_this_machine() -> None:
    topology = placed("{kind: broker}")
    listed = host_variables(BOARDS[0], "eth0", topology, Uplink("br0", "192.0.2.250/24"))
    assert listed["testbed_routes"] == [{"to": topology.prefix, "via": "192.0.2.250"}]
    assert host_variables(BOARDS[0], "eth0", topology, None)["testbed_routes"] == []


def test_the_interface_is_the_one_with_the_address() -> None:
    listed = [
        {"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}]},
        {"ifname": "wlan0", "addr_info": [{"local": "192.0.2.7"}, {"local": "192.0.2.1"}]},
    ]
    assert interface_with("192.0.2.1", listed) == "wlan0"
    assert interface_with("192.0.2.99", listed) is None


def test_names_of_backends_say_which_nodes_are_where() -> None:
    assert [has_boards(name) for name in ("boards", "boards+docker", "docker", "netns")] == [
        True,
        True,
        False,
        False,
    ]
    assert [local_backend(name) for name in ("boards", "boards+docker", "netns")] == [
        None,
        "docker",
        "netns",
    ]
