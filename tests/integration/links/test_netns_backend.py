"""The netns backend with real nodes: a lab from start to end, and its status when parts have died."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.backends.common.base import Actual
from testbed.backends.netns import NetnsBackend
from testbed.control import ControlError, request
from testbed.errors import InputError, NodeFailure
from testbed.keeper.client import Keeper, NodeProcess
from testbed.keeper.processes import marked
from testbed.lab.start.provenance import offered_congestion_controls
from testbed.places import LabPlace, RunPlace
from testbed.plan import Fingerprints
from testbed.topology.model import (
    Capture,
    CongestionControl,
    Emulator,
    Node,
    NodeKind,
    Profile,
    Shape,
    Topology,
)

pytestmark = pytest.mark.netns

SLOW = Profile("slow", Shape(rate_bps=1e6), Shape(rate_bps=2e6))
TOPOLOGY = Topology(
    "little",
    7,
    (SLOW, Profile("unused", Shape(delay_s=1))),
    (
        Node("hub", 1, NodeKind.BROKER, "slow", address="10.77.0.1"),
        Node("s1", 2, NodeKind.SENSOR, "slow", address="10.77.0.2"),
        Node("town", 3, NodeKind.SUBSCRIBER, "slow", topics=("alert",), address="10.77.0.3"),
    ),
    emulator=Emulator.TBF,
)
NAMES = frozenset(node.name for node in TOPOLOGY.nodes)


class Lab:
    """A backend with its places."""

    def __init__(self, folder: Path, topology: Topology = TOPOLOGY) -> None:
        self.place = LabPlace(folder / "s" / topology.name)
        self.run = RunPlace(folder / "c" / "run-1")
        self.run.folder.mkdir(parents=True, exist_ok=True)
        self.topology = topology
        self.backend = NetnsBackend(self.place, self.run, topology)

    def up(self) -> None:
        self.backend.prepare(self.topology)
        for step in ("create", "wire", "shape", "capture", "start"):
            done: list[str] = []
            getattr(self.backend, step)(self.topology.nodes, done.append)
            assert sorted(done) == sorted(node.name for node in self.topology.nodes), step
        wait_for(lambda: all(self.ask(node.name)["ready"] for node in self.topology.nodes))

    def ask(self, node: str, **fields: object) -> dict[str, object]:
        return request(self.place.node_control(node), {"do": "status", **fields}, 60.0)

    def again(self) -> NetnsBackend:
        """The lab, opened again as by another command."""
        return NetnsBackend(self.place, self.run, self.topology)


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="tb-", dir="/tmp"))
    yield made
    for place in (made / "s").glob("*"):
        NetnsBackend(LabPlace(place), RunPlace(made), TOPOLOGY).destroy()
    shutil.rmtree(made)


def ignore(_: str) -> None:
    return


@pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY])
def test_a_lab_starts_delivers_and_ends(folder: Path, emulator: Emulator) -> None:
    lab = Lab(folder, replace(TOPOLOGY, emulator=emulator))
    assert lab.backend.inspect() == Actual()
    lab.up()
    prints = {node.name: Fingerprints(lab.topology).of(node) for node in lab.topology.nodes}
    assert lab.again().inspect() == Actual(True, NAMES, NAMES, NAMES, NAMES, NAMES, prints)
    assert lab.again().emulator == emulator
    assert lab.backend.emulator_reason == "asked for"
    lab.ask("s1", do="publish", topic="alert", priority=5, size=3000)
    wait_for(lambda: lab.ask("town")["received"] == 1)
    done: list[str] = []
    lab.again().stop(lab.topology.nodes, done.append)
    assert sorted(done) == sorted(NAMES)
    assert lab.backend.inspect().created == frozenset()
    counts, trouble = lab.again().captured()
    assert counts.keys() == NAMES
    assert trouble == ""
    for node in lab.topology.nodes:
        assert counts[node.name]["packets"] > 5
        assert lab.run.pcap(node.name).stat().st_size > counts[node.name]["bytes"]
        assert '"event": "stop"' in lab.run.log(node.name).read_text()
    relay = lab.again().details().get("relay")
    assert (relay is None) == (emulator is Emulator.TBF)
    lab.again().destroy()
    assert marked(lab.place) == []
    assert lab.backend.inspect() == Actual()
    assert lab.backend.details() == {}


def test_a_dead_node_is_missing_and_can_be_created_again(folder: Path) -> None:
    lab = Lab(folder)
    lab.up()
    pid = Keeper(lab.place).status()["nodes"]["s1"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "s1" not in lab.backend.inspect().created)
    actual = lab.again().inspect()
    assert actual.wired == NAMES
    assert actual.started == NAMES - {"s1"}
    sensor = lab.topology.node("s1")
    lab.again().create([sensor], ignore)
    lab.again().start([sensor], ignore)
    wait_for(lambda: lab.ask("s1")["ready"])


def test_a_removed_node_is_gone_and_the_others_stay(folder: Path) -> None:
    lab = Lab(folder)
    lab.up()
    lab.again().remove(["town"], ignore)
    actual = lab.again().inspect()
    assert actual.created == actual.wired == actual.started == NAMES - {"town"}
    assert actual.fingerprints.keys() == NAMES - {"town"}


def test_nodes_that_cannot_start_are_named_with_their_last_output(folder: Path) -> None:
    lab = Lab(folder)
    lab.backend.prepare(lab.topology)
    lab.backend.create(lab.topology.nodes, ignore)
    pid = Keeper(lab.place).status()["nodes"]["s1"]["pid"]
    wait_for(lambda: lab.place.node_control("s1").exists())
    (lab.run.logs / "s1.stderr").write_text("no memory\n")
    os.kill(pid, signal.SIGKILL)
    wait_for(
        lambda: not lab.place.node_control("s1").is_socket() or "s1" not in lab.backend._living()
    )
    done: list[str] = []
    with pytest.raises(NodeFailure, match=r"s1 did not start \(s1: it has ended; no memory\)"):
        lab.backend.start(lab.topology.nodes, done.append)
    assert sorted(done) == ["hub", "town"]


def test_a_node_that_does_not_react_to_sigterm_is_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.backends.common.local.STOP_GRACE_S", 0.2)
    lab = Lab(folder)
    lab.up()
    pid = Keeper(lab.place).status()["nodes"]["town"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    lab.backend.stop(lab.topology.nodes, ignore)
    assert lab.backend.inspect().created == frozenset()


def test_links_without_capture_are_raised_too(folder: Path) -> None:
    lab = Lab(folder, replace(TOPOLOGY, capture=Capture(enabled=False)))
    lab.up()
    assert lab.backend.inspect().captured == NAMES
    assert lab.backend.captured() == ({}, "")
    assert not lab.run.pcaps.exists()


def test_a_lab_whose_keeper_was_killed_is_empty_and_can_be_destroyed(folder: Path) -> None:
    lab = Lab(folder)
    lab.up()
    os.kill(Keeper(lab.place).status()["pid"], signal.SIGKILL)
    wait_for(lambda: marked(lab.place) == [])
    assert lab.again().inspect() == Actual()
    with pytest.raises(ControlError, match="keeper of lab little has ended"):
        lab.again().captured()
    assert lab.again().destroy() == []


def test_an_emulator_that_cannot_shape_the_links_as_requested_is_refused(folder: Path) -> None:
    slow = replace(SLOW, up=Shape(rate_bps=1e6, delay_s=0.1))
    lab = Lab(folder, replace(TOPOLOGY, profiles=(slow,)))
    with pytest.raises(InputError, match="only limits rates"):
        lab.backend.prepare(lab.topology)
    lab.backend.destroy()
    assert marked(lab.place) == []


def test_nodes_run_no_code_from_the_folder_of_the_lab(folder: Path) -> None:
    lab = Lab(folder)
    lab.place.folder.mkdir(parents=True)
    for name in ("nodes.pyz", "nodes.py"):
        (lab.place.folder / name).write_bytes(b"raise SystemExit('planted')")
    lab.up()
    assert [log.read_text() for log in lab.run.logs.glob("*.stderr")] == ["", "", ""]


def test_each_process_names_its_node(folder: Path) -> None:
    lab = Lab(folder)
    lab.up()
    nodes = {process.role: process.pid for process in marked(lab.place) if ":" in process.role}
    assert nodes.keys() == {f"node:{name}" for name in NAMES}
    for role, pid in nodes.items():
        arguments = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
        assert arguments[1:] == ["-m", "nodes", str(lab.place.node_config(role[5:]))]
        assert os.getsid(pid) == pid


def test_nodes_are_the_keepers_own_children(folder: Path) -> None:
    lab = Lab(folder)
    lab.up()
    keeper = Keeper(lab.place).status()["pid"]
    parents = {process.role: parent_of(process.pid) for process in marked(lab.place)}
    del parents["keeper"]
    assert set(parents.values()) == {keeper}
    assert "prefork" not in parents, "the prefork process has ended"


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_node_that_cannot_read_its_file_fails_alone_with_its_own_message(folder: Path) -> None:
    lab = Lab(folder)
    lab.backend.prepare(lab.topology)
    logs = lab.run.logs
    logs.mkdir()
    (logs / "town.stderr").mkdir()  # no process can write there
    bad = lab.place.folder / "bad.json"
    bad.write_text("{")
    asked = [
        NodeProcess("s1", bad, logs / "s1.stderr"),
        NodeProcess("town", bad, logs / "town.stderr"),
    ]
    keeper = Keeper(lab.place)
    pids, failed = keeper.fork(asked)
    assert pids.keys() == {"s1"}
    assert "Is a directory" in failed["town"]
    wait_for(lambda: not keeper.status()["nodes"]["s1"]["running"])
    assert keeper.status()["nodes"] == {"s1": {"pid": pids["s1"], "running": False, "exit_code": 2}}
    assert "bad.json is not JSON" in (logs / "s1.stderr").read_text()
    lab.backend.destroy()


LONG = replace(
    TOPOLOGY,
    nodes=(
        *TOPOLOGY.nodes,
        Node("x" * 90, 4, NodeKind.SENSOR, "slow", address="10.77.0.4"),
    ),
)


def test_names_too_long_for_a_socket_are_refused_before_anything_starts(folder: Path) -> None:
    lab = Lab(folder, LONG)
    with pytest.raises(InputError, match=r"too long: .*xxx/ctl") as refused:
        lab.backend.prepare(lab.topology)
    assert "TESTBED_STATE" in refused.value.hint
    assert marked(lab.place) == []


def test_names_too_long_are_refused_in_a_lab_that_is_up_too(folder: Path) -> None:
    lab = Lab(folder)
    lab.backend.prepare(lab.topology)
    lab.topology = LONG
    with pytest.raises(InputError, match="too long"):
        lab.again().create(LONG.nodes, ignore)
    assert Keeper(lab.place).status()["nodes"] == {}


@pytest.mark.parametrize("tcp", CongestionControl)
def test_all_connections_of_a_lab_use_the_congestion_control_of_its_file(
    folder: Path, tcp: CongestionControl
) -> None:
    """Also those that a node accepts, and also where the machine does not allow it to everybody."""
    if tcp not in offered_congestion_controls():
        pytest.skip(f"this kernel has no {tcp}")
    lab = Lab(folder, replace(TOPOLOGY, tcp=tcp))
    lab.up()
    seen = {name: congestion_controls(lab, name) for name in sorted(NAMES)}
    assert seen == {"hub": [tcp, tcp], "s1": [tcp], "town": [tcp]}


def congestion_controls(lab: Lab, node: str) -> list[str]:
    """What `ss -ti` shows of each established connection of this node."""
    keeper, output = Keeper(lab.place), lab.run.folder / f"{node}.ss"
    number = keeper.execute(node, ["ss", "-Htin", "state", "established"], output)
    wait_for(lambda: keeper.executed(number) is not None)
    shown = output.read_text()
    assert keeper.executed(number) == 0, shown
    details = (line.split() for line in shown.splitlines() if line.startswith(("\t", " ")))
    return [next(word for word in line if word in tuple(CongestionControl)) for line in details]
