"""node.json, and the fingerprint that detects its changes."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from nodes.runtime.config import parse
from testbed.backends.common.node_config import (
    lab_secret,
    link_spec,
    node_config,
    stored_fingerprint,
    write_node_files,
)
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import Method, Node, NodeKind, Profile, Topology

BROKER = Node("hub", 1, NodeKind.BROKER, "lan", address="10.77.0.1")
SENSOR = Node("s1", 2, NodeKind.SENSOR, "slow", address="10.77.0.2")
LISTENER = Node("town", 300, NodeKind.SUBSCRIBER, "lan", topics=("alert",), address="10.77.1.44")
TOPOLOGY = Topology(
    "valley",
    42,
    (Profile("lan"), Profile("slow", mtu=576)),
    (BROKER, SENSOR, LISTENER),
)
RUN = RunPlace(Path("/runs/valley-1"))


def config_of(node: Node) -> dict[str, object]:
    return node_config(TOPOLOGY, node, RUN, "/lab/ctl", "/runs/log", "secret")


def test_a_broker_listens_on_its_own_address() -> None:
    config = config_of(BROKER)
    assert config["listen"] == {"host": "10.77.0.1", "port": 9000}
    assert config["brokers"] == []


def test_sensors_and_subscribers_know_the_address_of_the_broker() -> None:
    for node in (SENSOR, LISTENER):
        config = config_of(node)
        assert config["listen"] is None
        assert config["brokers"] == [
            {"name": "hub", "number": 1, "host": "10.77.0.1", "port": 9000}
        ]
    assert config_of(LISTENER)["topics"] == ["alert"]


def test_a_node_understands_its_config() -> None:
    for node in TOPOLOGY.nodes:
        understood = parse(config_of(node))
        assert (understood.name, understood.number, understood.seed) == (node.name, node.number, 42)
        assert (understood.lab, understood.run) == ("valley", "valley-1")


def test_both_ends_of_a_link_know_its_delivery() -> None:
    own = Method("fifo", (("limit_bytes", 5000),))
    nodes = (BROKER, replace(SENSOR, delivery=own), replace(LISTENER, delivery=TOPOLOGY.delivery))
    topology = replace(TOPOLOGY, nodes=nodes)
    hub, sensor, town = (
        parse(node_config(topology, node, RUN, "/lab/ctl", "/runs/log", "secret")) for node in nodes
    )
    assert sensor.delivery.parameters == {"limit_bytes": 5000}
    assert hub.deliveries == {"s1": sensor.delivery}  # what differs from the lab's
    assert hub.delivery == town.delivery
    assert sensor.deliveries == town.deliveries == {}


def test_a_lab_has_one_secret_whichever_thread_asks_first(tmp_path: Path) -> None:
    lab = LabPlace(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        secrets = set(threads.map(lambda _: lab_secret(lab), range(100)))
    assert len(secrets) == 1
    assert len(secrets.pop()) == 32
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert lab.secret.stat().st_mode & 0o077 == 0
    assert lab_secret(LabPlace(tmp_path)) == lab.secret.read_text()


def test_the_fingerprint_is_kept_with_the_node(tmp_path: Path) -> None:
    lab = LabPlace(tmp_path / "valley")
    assert stored_fingerprint(lab, "s1") is None
    path = write_node_files(lab, SENSOR, config_of(SENSOR), "1234abcd")
    assert stored_fingerprint(lab, "s1") == "1234abcd"
    assert parse(json.loads(path.read_text())).name == "s1"


def test_a_damaged_node_file_has_no_fingerprint(tmp_path: Path) -> None:
    lab = LabPlace(tmp_path / "valley")
    path = write_node_files(lab, SENSOR, config_of(SENSOR), "1234abcd")
    for content in ("", "[]", "{}", '{"fingerprint": '):
        path.write_text(content)
        assert stored_fingerprint(lab, "s1") is None


def test_a_socket_of_a_dead_node_is_taken_away(tmp_path: Path) -> None:
    lab = LabPlace(tmp_path / "valley")
    lab.node("s1").mkdir(parents=True)
    lab.node_control("s1").touch()
    write_node_files(lab, SENSOR, config_of(SENSOR), "1234abcd")
    assert not lab.node_control("s1").exists()


def test_a_link_follows_from_the_nodes_number_and_profile(tmp_path: Path) -> None:
    lab = LabPlace(tmp_path / "valley")
    spec = link_spec(TOPOLOGY, LISTENER, lab, RUN)
    assert (spec.far_if, spec.mac, spec.address, spec.prefix_length) == (
        "l300",
        "02:74:62:00:01:2c",
        "10.77.1.44",
        16,
    )
    assert spec.alias == f"testbed {lab.folder} valley-1 town"
    assert link_spec(TOPOLOGY, SENSOR, lab, RUN).mtu == 576
    assert spec.behind is None


def test_the_link_of_a_node_behind_a_router_ends_there(tmp_path: Path) -> None:
    behind = replace(SENSOR, router="mast")
    assert link_spec(TOPOLOGY, behind, LabPlace(tmp_path / "valley"), RUN).behind == "mast"
