"""Any process of a lab may be killed at any moment: nothing of the lab is left on the machine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.labs.network_namespaces import SeenNamespaces
from testbed.capture.records import read_records
from testbed.errors import TestbedError
from testbed.keeper.client import Keeper
from testbed.keeper.processes import end_marked, marked
from testbed.links.netlink import netlink
from testbed.links.requests import delete_link
from testbed.links.wiring import interfaces
from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root]

NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])


def namespaces_of(lab: Any) -> SeenNamespaces:
    """The network namespaces of a lab's processes."""
    return SeenNamespaces(process.pid for process in marked(lab.place))


def assert_gone(lab: Any, namespaces: SeenNamespaces, tools: Any) -> None:
    assert marked(lab.place) == []
    # A process that ends loses its environment, and with it the mark of our lab, a little before its namespace.
    tools.wait_for(lambda: not namespaces.still_held())


@EACH
def test_killing_the_keeper_ends_the_whole_lab(
    wired: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    host_before = interfaces()
    lab = wired(emulator, ["n1", "n2", "n3"], raised=False)
    lab.shape_all(Shape(rate_bps=1e6))
    lab.keeper.capture(["n1", "n2", "n3"], tmp_path)
    namespaces = namespaces_of(lab)
    assert len(namespaces) == 5, "the core, three nodes, and one without links for the capture"
    os.kill(lab.keeper.status()["pid"], signal.SIGKILL)
    tools.wait_for(lambda: marked(lab.place) == [])
    assert_gone(lab, namespaces, tools)
    assert Keeper.connect(lab.place) is None
    assert end_marked(lab.place) == []
    assert interfaces() <= host_before


@EACH
def test_sigterm_to_the_keeper_ends_the_whole_lab(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2"])
    namespaces = namespaces_of(lab)
    os.kill(lab.keeper.status()["pid"], signal.SIGTERM)
    tools.wait_for(lambda: marked(lab.place) == [])
    assert_gone(lab, namespaces, tools)
    assert not lab.place.keeper_socket.exists()


def test_a_suspended_keeper_can_be_ended(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.TBF, ["n1"])
    namespaces = namespaces_of(lab)
    os.kill(lab.keeper.status()["pid"], signal.SIGSTOP)
    end_marked(lab.place)
    assert_gone(lab, namespaces, tools)


def test_a_nodes_own_children_end_with_the_lab(lab_places: Any, tools: Any) -> None:
    from testbed.keeper.client import Program

    place = lab_places()
    keeper = Keeper.launch(place, "run")
    shell = ("sh", "-c", "setsid sleep 600 & exec sleep 600")
    keeper.spawn([Program("n1", shell, place.folder / "log", {})])
    tools.wait_for(lambda: sum(p.role == "node:n1" for p in marked(place)) == 2)
    end_marked(place)
    assert marked(place) == []


def test_a_dead_relay_is_noticed_and_the_links_can_be_made_again(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    tools.say_hello(lab, "n1", "n2")
    (relay,) = [process for process in marked(lab.place) if process.role == "relay"]
    os.kill(relay.pid, signal.SIGKILL)
    tools.wait_for(lambda: lab.keeper.status()["wired"] == [])
    assert lab.keeper.status()["workers"] == {"relay": "dead", "capture": None}
    assert lab.keeper.counters() is None
    lab.keeper.wire(Emulator.RELAY, [tools.link("n1"), tools.link("n2")])
    lab.keeper.capture(["n1", "n2"], None)
    tools.say_hello(lab, "n1", "n2")
    assert lab.keeper.status()["workers"]["relay"] == "running"


def test_links_of_a_dead_relay_cannot_be_shaped_and_do_not_belong_to_the_next_relay(
    wired: Any, tools: Any
) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2", "n3"])
    lab.shape_all(Shape(rate_bps=1e6))
    (relay,) = [process for process in marked(lab.place) if process.role == "relay"]
    os.kill(relay.pid, signal.SIGKILL)
    tools.wait_for(lambda: lab.keeper.status()["wired"] == [])
    with pytest.raises(TestbedError, match="relay has ended"):
        lab.shape_all(Shape(rate_bps=2e6))
    assert lab.keeper.status()["workers"]["relay"] == "dead"
    lab.keeper.wire(Emulator.RELAY, [tools.link("n1"), tools.link("n2")])
    status = lab.keeper.status()
    assert status["wired"] == ["n1", "n2"]
    assert status["shaped"] == status["captured"] == []
    lab.keeper.wire(Emulator.RELAY, [tools.link("n3")])
    lab.keeper.capture(["n1", "n2", "n3"], None)
    tools.say_hello(lab, "n1", "n3")


def test_a_removed_interface_disturbs_no_other_link(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2", "n3"])
    namespace = os.open(f"/proc/{lab.pids['n1']}/ns/net", os.O_RDONLY)
    try:
        with netlink(namespace) as kernel:
            kernel.do([delete_link("eth0")])
    finally:
        os.close(namespace)
    tools.say_hello(lab, "n2", "n3")
    (relay,) = [process for process in marked(lab.place) if process.role == "relay"]
    before = busy_s(relay.pid)
    time.sleep(0.5)
    assert busy_s(relay.pid) - before < 0.25  # it does not spin on the dead tap
    lab.keeper.unwire(["n1"])
    assert lab.keeper.status()["wired"] == ["n2", "n3"]


def busy_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_the_capture(lab: Any, tools: Any) -> None:
    (capture,) = [process for process in marked(lab.place) if process.role == "capture"]
    os.kill(capture.pid, signal.SIGKILL)
    tools.wait_for(lambda: lab.keeper.status()["captured"] == [])
    assert lab.keeper.status()["workers"]["capture"] == "dead"


def packets_in(path: Path) -> int:
    return len(list(read_records(path)))


def test_packets_that_a_dead_capture_had_written_are_counted(
    wired: Any, tools: Any, tmp_path: Path
) -> None:
    lab = wired(Emulator.TBF, ["n1", "n2"], raised=False)
    lab.keeper.capture(["n1", "n2"], tmp_path)
    assert lab.keeper.status()["workers"] == {"relay": None, "capture": "running"}
    tools.say_hello(lab, "n1", "n2")
    tools.wait_for(lambda: packets_in(tmp_path / "n1.pcap") >= 2)
    kill_the_capture(lab, tools)
    links, error = lab.keeper.capture_stop()
    assert links.keys() == {"n1", "n2"}
    assert links["n1"]["packets"] == packets_in(tmp_path / "n1.pcap")
    assert links["n1"]["bytes"] > 0
    assert error.startswith("the capture process had died at ")
    assert lab.keeper.status()["workers"]["capture"] is None
    assert lab.keeper.capture_stop() == ({}, "")


def test_a_restarted_capture_reports_the_gap(wired: Any, tools: Any, tmp_path: Path) -> None:
    lab = wired(Emulator.TBF, ["n1"], raised=False)
    lab.keeper.capture(["n1"], tmp_path)
    kill_the_capture(lab, tools)
    lab.keeper.capture(["n1"], tmp_path)
    assert lab.keeper.status()["captured"] == ["n1"]
    links, error = lab.keeper.capture_stop()
    assert links.keys() == {"n1"}
    assert error.startswith("the capture process had died at ")


def test_a_node_that_was_adopted_loses_its_link_with_its_process(
    lab_places: Any, tools: Any
) -> None:
    place = lab_places()
    keeper = Keeper.launch(place, "run")
    node = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        own = Path("/proc/self/ns/net").readlink()
        tools.wait_for(lambda: Path(f"/proc/{node.pid}/ns/net").readlink() != own)
        assert keeper.adopt({"n1": node.pid}) == {}
        keeper.wire(Emulator.TBF, [tools.link("n1")])
        keeper.shape({"n1": (Shape(), Shape())})
        assert keeper.status()["wired"] == keeper.status()["shaped"] == ["n1"]
    finally:
        node.kill()
        node.wait()
    assert keeper.status()["wired"] == keeper.status()["shaped"] == []


LAUNCH = """
import sys
from pathlib import Path
from testbed.keeper.client import Keeper, Program
from testbed.places import LabPlace
lab = LabPlace(Path(sys.argv[1]))
keeper = Keeper.launch(lab, "run")
for number in range(40):
    keeper.spawn([Program(f"n{number}", ("sleep", "600"), lab.folder / "log", {})])
"""


@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.3, 0.4, 0.6])
def test_processes_of_a_command_that_was_killed_at_the_start_can_be_ended(
    lab_places: Any, after_s: float
) -> None:
    place = lab_places()
    command = subprocess.Popen([sys.executable, "-c", LAUNCH, str(place.folder)])
    time.sleep(after_s)
    command.kill()
    command.wait()
    end_marked(place)
    assert marked(place) == []
    assert Keeper.connect(place) is None


def test_a_lab_has_one_keeper(lab_places: Any) -> None:
    place = lab_places()
    Keeper.launch(place, "run")
    with pytest.raises(TestbedError, match="has a keeper already"):
        Keeper.launch(place, "run")


def test_a_socket_left_by_a_dead_keeper_does_not_hinder_the_next(lab_places: Any) -> None:
    place = lab_places()
    keeper = Keeper.launch(place, "run")
    os.kill(keeper.status()["pid"], signal.SIGKILL)
    end_marked(place)
    assert place.keeper_socket.exists()
    assert Keeper.launch(place, "run2").status()["run"] == "run2"


def test_a_path_too_long_for_a_socket_is_refused_with_a_hint(tmp_path: Path) -> None:
    from testbed.places import LabPlace

    with pytest.raises(TestbedError, match="too long") as refused:
        Keeper.launch(LabPlace(tmp_path / ("x" * 100)), "run")
    assert "TESTBED_STATE" in refused.value.hint
