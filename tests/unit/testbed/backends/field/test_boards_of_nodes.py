"""Assigning an inventory's hosts to a topology's nodes."""

from pathlib import Path

import pytest
import yaml

from testbed.backends.field.boards import (
    Board,
    Uplink,
    at_their_addresses,
    boards_of,
    is_mixed,
    sample_inventory,
    uplink_of,
)
from testbed.errors import InputError
from testbed.topology import load, load_text
from testbed.topology.model import Topology

FIELD = """
name: field
groups:
  slopes: {kind: sensor, count: 2, place: boards}
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, topics: [alerts], place: boards}
"""


@pytest.fixture
def topology() -> Topology:
    return load_text(FIELD, "field.yaml")


def test_a_host_runs_the_node_of_its_name_or_the_node_that_it_names(topology: Topology) -> None:
    boards = boards_of(
        topology,
        {
            "slopes-0": {"ansible_host": "192.0.2.1", "ansible_user": "pi", "ansible_port": 2222},
            "roof": {"ansible_host": "192.0.2.2", "testbed_node": "slopes-1"},
            "siren": {"ansible_host": "pi.example", "testbed_address": "192.0.2.3"},
            "spare": {"ansible_host": "192.0.2.4"},
        },
    )
    assert boards == (
        Board("slopes-0", "slopes-0", "192.0.2.1", "192.0.2.1", port=2222, user="pi"),
        Board("slopes-1", "roof", "192.0.2.2", "192.0.2.2"),
        Board("siren", "siren", "192.0.2.3", "pi.example"),
    )


def test_the_inventory_names_real_links_and_interfaces(topology: Topology) -> None:
    hosts = {name: {"ansible_host": "192.0.2.9"} for name in ("slopes-0", "slopes-1")}
    stick = {"ansible_host": "192.0.2.3", "testbed_shape": False, "testbed_interface": "wwan0"}
    siren = boards_of(topology, {**hosts, "siren": stick})[-1]
    assert (siren.shape, siren.interface) == (False, "wwan0")


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ({"slopes-0": {"ansible_host": "192.0.2.1"}}, "no board for slopes-1, siren"),
        (
            {"a": {"testbed_node": "siren"}, "b": {"testbed_node": "siren"}},
            "both a and b of the inventory are to be siren",
        ),
        (
            {"slopes-0": {}, "slopes-1": {}, "siren": {}},
            "'slopes-0' is not an IPv4 address",
        ),
    ],
)
def test_inventories_that_do_not_fit_the_topology_are_refused(
    topology: Topology, hosts: dict[str, dict[str, str]], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        boards_of(topology, hosts)
    assert caught.value.hint


def test_a_lab_without_boards_is_not_deployed() -> None:
    here = load_text("nodes: {broker: {kind: broker}}", "here.yaml")
    with pytest.raises(InputError, match="place: boards"):
        boards_of(here, {"broker": {"ansible_host": "192.0.2.1"}})


def test_boards_keep_their_own_addresses_and_the_others_theirs(topology: Topology) -> None:
    boards = [Board("siren", "siren", "192.0.2.3", "192.0.2.3")]
    placed = at_their_addresses(topology, boards)
    assert placed.node("siren").address == "192.0.2.3"
    assert placed.node("broker") == topology.node("broker")
    assert placed.has_boards
    assert not topology.has_boards
    assert is_mixed(topology)


def test_one_host_names_the_uplink_for_all_hosts() -> None:
    hosts = {
        "a": {},
        "b": {"testbed_uplink_interface": "br0", "testbed_uplink_address": "192.0.2.250/24"},
    }
    assert uplink_of(hosts) == Uplink("br0", "192.0.2.250/24")
    assert Uplink("br0", "192.0.2.250/24").gateway == "192.0.2.250"
    assert uplink_of({"a": {}}) is None
    with pytest.raises(InputError, match="is not an address with a prefix length"):
        uplink_of({"a": {"testbed_uplink_interface": "br0", "testbed_uplink_address": "here"}})


def test_the_sample_inventory_is_right_for_its_topology(topology: Topology) -> None:
    text = sample_inventory(topology, "field.yaml", ["192.0.2.1", "192.0.2.2", "192.0.2.3"], "pi")
    read = yaml.safe_load(text)["boards"]
    hosts = {name: {**read["vars"], **each} for name, each in read["hosts"].items()}
    assert [board.node for board in boards_of(topology, hosts)] == ["slopes-0", "slopes-1", "siren"]
    assert uplink_of(hosts) is not None  # one node stays here
    with pytest.raises(InputError, match="1 addresses for 3 boards"):
        sample_inventory(topology, "field.yaml", ["192.0.2.1"], "pi")


def test_the_stored_sample_is_what_the_command_writes(repository: Path) -> None:
    topologies = repository / "topologies"
    written = sample_inventory(load(topologies / "hillside.yaml"), "hillside.yaml", (), "pi")
    assert (topologies / "inventories" / "hillside.yml").read_text() == written
