"""Links as the keeper makes them carry the packets that are sent, and nothing else."""

import errno
import os
import socket
import threading
from typing import Any

import pytest

from testbed.control import ControlError
from testbed.keeper.client import Keeper, Program
from testbed.links.namespaces import inside
from testbed.links.wiring import interfaces
from testbed.places import LabPlace
from testbed.topology.model import Emulator

pytestmark = [pytest.mark.netns, pytest.mark.root]

TWENTY = [f"n{number}" for number in range(1, 21)]
SO_RCVBUFFORCE = 33
NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])


@EACH
def test_twenty_nodes_reach_each_other(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab = wired(emulator, TWENTY)
    status = lab.keeper.status()
    assert status["emulator"] == emulator
    assert status["wired"] == status["captured"] == TWENTY
    with lab.socket("n1") as hub:
        for node in TWENTY[1:]:
            with lab.socket(node) as spoke:
                spoke.sendto(node.encode(), (tools.address("n1"), tools.port))
                assert hub.recv(100) == node.encode()


@EACH
def test_tcp_carries_a_megabyte_in_frames_of_the_links_size(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2"], mtu=1000)
    sent = os.urandom(1_000_000)
    received = bytearray()
    tap = frames_at(lab, "n1")
    with (
        lab.socket("n1", socket.SOCK_STREAM) as server,
        lab.socket("n2", socket.SOCK_STREAM) as one,
    ):
        server.bind((tools.address("n1"), 80))
        server.listen()

        def send() -> None:
            one.connect((tools.address("n1"), 80))
            one.sendall(sent)
            one.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        connection, _ = server.accept()
        with connection:
            while part := connection.recv(1 << 16):
                received += part
        sender.join()
    assert bytes(received) == sent
    sizes = sizes_of(tap)
    assert max(sizes) == 1014  # no offload: the shaper sees packets as on a real link


def frames_at(lab: Any, node: str) -> socket.socket:
    """A raw socket on the node's interface."""
    namespace = os.open(f"/proc/{lab.pids[node]}/ns/net", os.O_RDONLY)
    try:
        with inside(namespace):
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            tap.bind(("eth0", 3))
    finally:
        os.close(namespace)
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    tap.setblocking(False)
    return tap


def sizes_of(tap: socket.socket) -> list[int]:
    with tap:
        return [len(frame) for frame in frames_of(tap)]


def frames_of(tap: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(tap.recv(65536))
        except BlockingIOError:
            return found


@EACH
def test_a_link_carries_only_its_own_nodes_packets(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, TWENTY)
    with frames_at(lab, "n20") as bystander:
        for node in TWENTY[1:19]:
            tools.say_hello(lab, node, "n1")
        assert frames_of(bystander) == []  # neither ARP requests nor other packets


@EACH
def test_links_are_down_until_the_capture_listens(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2"], raised=False)
    with lab.socket("n1") as sender, pytest.raises(OSError, match="unreachable") as refused:
        sender.sendto(b"too early", (tools.address("n2"), tools.port))
    assert refused.value.errno == errno.ENETUNREACH
    assert lab.keeper.status()["captured"] == []
    lab.keeper.capture(["n1", "n2"], None)
    tools.say_hello(lab, "n1", "n2")


def test_interfaces_of_a_link_are_named_after_its_node(wired: Any) -> None:
    lab = wired(Emulator.TBF, ["n3"])
    for pid, ifname in ((lab.pids["n3"], "eth0"), (lab.keeper.status()["pid"], "l3")):
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            assert ifname in interfaces(namespace)
        finally:
            os.close(namespace)
    assert "l3" not in interfaces()


@EACH
def test_two_labs_with_the_same_addresses_exchange_no_packets(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    one, other = wired(emulator, ["n1", "n2"]), wired(emulator, ["n1", "n2"])
    with other.socket("n2") as other_receiver:
        with one.socket("n1") as sender, one.socket("n2") as receiver:
            sender.sendto(b"for us", (tools.address("n2"), tools.port))
            assert receiver.recv(100) == b"for us"
        assert tools.receive_all(other_receiver, quiet_s=0.1) == []


@EACH
def test_a_removed_node_leaves_the_others_alone_and_can_come_back(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2", "n3"])
    tools.say_hello(lab, "n1", "n2")
    lab.keeper.unwire(["n2"])
    status = lab.keeper.status()
    assert status["wired"] == ["n1", "n3"]
    assert "n2" not in status["nodes"]
    tools.wait_for(lambda: not os.path.exists(f"/proc/{lab.pids['n2']}"))  # noqa: PTH110
    tools.say_hello(lab, "n1", "n3")
    stderr = lab.place.folder / "n2.stderr"
    pids, _ = lab.keeper.spawn([Program("n2", ("sleep", "600"), stderr, {})])
    lab.pids.update(pids)
    lab.keeper.wire(emulator, [tools.link("n2")])
    lab.keeper.capture(["n2"], None)
    tools.say_hello(lab, "n2", "n1")


def test_a_node_that_died_gets_a_new_process_on_its_old_link(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.TBF, ["n1", "n2"])
    lab.keeper.signal(["n1"], 9)
    tools.wait_for(lambda: not lab.keeper.status()["nodes"]["n1"]["running"])
    assert lab.keeper.status()["nodes"]["n1"]["exit_code"] == -9
    assert lab.keeper.status()["wired"] == ["n1", "n2"]
    stderr = lab.place.folder / "n1.stderr"
    pids, failed = lab.keeper.spawn([Program("n1", ("sleep", "600"), stderr, {})])
    assert failed == {}
    lab.pids.update(pids)
    tools.say_hello(lab, "n1", "n2")


def test_programs_that_cannot_start_are_named_and_the_others_run(lab_places: Any) -> None:
    place = lab_places()
    keeper = Keeper.launch(place, "run")
    log = place.folder / "log"
    pids, failed = keeper.spawn(
        [
            Program("good", ("sleep", "600"), log, {}),
            Program("bad", ("/no/such/program",), log, {}),
        ]
    )
    assert pids.keys() == {"good"}
    assert "No such file" in failed["bad"]
    _, again = keeper.spawn([Program("good", ("sleep", "600"), log, {})])
    assert "runs already" in again["good"]


def test_a_link_that_cannot_be_created_leaves_nothing_behind(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.TBF, ["n1", "n2"])
    lab.keeper.unwire(["n2"])
    with pytest.raises(ControlError, match="no node 'n9'"):
        lab.keeper.wire(Emulator.TBF, [tools.link("n9")])
    with pytest.raises(ControlError, match="n1 has a link already"):
        lab.keeper.wire(Emulator.TBF, [tools.link("n1")])
    with pytest.raises(ControlError, match="served by tbf, not by relay"):
        lab.keeper.wire(Emulator.RELAY, [tools.link("n1")])
    assert lab.keeper.status()["wired"] == ["n1"]


def test_the_keeper_adopts_a_process_that_it_did_not_start(
    lab_places: Any, wired: Any, tools: Any
) -> None:
    foreign = wired(Emulator.TBF, [f"n{n}" for n in (1, 2)], raised=False)
    foreign.keeper.unwire(["n2"])
    place: LabPlace = lab_places()
    keeper = Keeper.launch(place, "run")
    source = foreign.keeper.spawn([Program("foreign", ("sleep", "600"), place.folder / "log", {})])[
        0
    ]["foreign"]
    assert keeper.adopt({"n5": source, "n6": 2**22 - 1}).keys() == {"n6"}
    keeper.wire(Emulator.RELAY, [tools.link("n5")])
    keeper.capture(["n5"], None)
    namespace = os.open(f"/proc/{source}/ns/net", os.O_RDONLY)
    try:
        assert "eth0" in interfaces(namespace)
        keeper.unwire(["n5"])
        assert "eth0" not in interfaces(namespace)
    finally:
        os.close(namespace)
    assert os.path.exists(f"/proc/{source}")  # noqa: PTH110 - not the keeper's to end
