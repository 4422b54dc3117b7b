"""Several nodes behind one router share its link."""

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.records import read_records
from testbed.control import ControlError
from testbed.keeper.client import Keeper, Program
from testbed.keeper.processes import marked
from testbed.links.changes import DirectionState, LinkState
from testbed.links.namespaces import inside
from testbed.links.netlink import netlink
from testbed.links.requests import delete_link
from testbed.links.wiring import interfaces
from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root]

NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])
FAR, ROUTER, ONE, TWO, OUTER = "n1", "n2", "n3", "n4", "n5"
ALL = [FAR, ROUTER, ONE, TWO]
MEMBERS = [ONE, TWO]


@pytest.fixture
def shared(wired: Any, tools: Any) -> Callable[..., Any]:
    """shared(emulator): n3 and n4 behind the router n2; n1 somewhere else."""

    def make(emulator: Emulator, *, raised: bool = True, mtu: dict[str, int] | None = None) -> Any:
        lab = wired(emulator, [FAR, ONE, TWO], raised=False, links=[])
        lab.keeper.routers([ROUTER])
        sizes = mtu or {}
        lab.keeper.wire(emulator, links(tools, ALL, sizes))
        if raised:
            lab.keeper.capture(ALL, None)
        return lab

    return make


def links(tools: Any, names: list[str], mtu: dict[str, int] | None = None) -> list[Any]:
    return [
        replace(
            tools.link(name, (mtu or {}).get(name, 1500)),
            behind=ROUTER if name in MEMBERS else None,
        )
        for name in names
    ]


@EACH
def test_nodes_behind_a_router_reach_all_nodes_and_are_reached(
    shared: Any, tools: Any, emulator: Emulator
) -> None:
    lab = shared(emulator)
    assert lab.keeper.status()["wired"] == [FAR, ONE, TWO, ROUTER]
    for one, other in ((ONE, FAR), (TWO, FAR), (FAR, ONE), (ONE, TWO)):
        tools.say_hello(lab, one, other)
        tools.transfer(lab, one, other, 20_000)


@EACH
def test_each_link_has_its_own_capture(
    shared: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = shared(emulator, raised=False)
    lab.keeper.capture(ALL, tmp_path)
    tools.say_hello(lab, ONE, FAR)
    tools.say_hello(lab, ONE, TWO)
    lab.keeper.capture_stop()
    ends = {}
    for name in ALL:
        records = [data for _, _, data in read_records(tmp_path / f"{name}.pcap")]
        assert all(data[12:14] == b"\x08\x00" for data in records)
        ends[name] = {(last(data[26:30]), last(data[30:34])): data for data in records}
        assert len(ends[name]) == len(records)
    assert ends[ONE].keys() == {("n3", "n1"), ("n1", "n3"), ("n3", "n4"), ("n4", "n3")}
    assert ends[TWO].keys() == {("n3", "n4"), ("n4", "n3")}
    # Packets between neighbours do not pass the router's own link.
    assert ends[ROUTER].keys() == ends[FAR].keys() == {("n3", "n1"), ("n1", "n3")}
    up, down = ends[ROUTER]["n3", "n1"], ends[ROUTER]["n1", "n3"]
    gateway, router = bytes.fromhex("027462000000"), bytes.fromhex("027462000002")
    assert (up[0:6], up[6:12]) == (gateway, router)
    assert (down[0:6], down[6:12]) == (router, gateway)


def last(address: bytes) -> str:
    return f"n{address[3]}"


@EACH
@pytest.mark.parametrize("direction", ["up", "down"])
def test_nodes_behind_a_router_share_its_link(
    shared: Any, tools: Any, emulator: Emulator, direction: str
) -> None:
    rate_bps, payload, count = 800_000, 1000, 50
    lab = shared(emulator)
    shape = Shape(rate_bps=rate_bps, queue_bytes=10**6)
    lab.keeper.shape({ROUTER: (shape, shape), FAR: (Shape(), Shape())}, 1)
    with lab.socket(FAR) as far, lab.socket(ONE) as one, lab.socket(TWO) as two:
        senders = [(one, FAR), (two, FAR)] if direction == "up" else [(far, ONE), (far, TWO)]
        for _ in range(count):
            for sender, receiver in senders:
                sender.sendto(bytes(payload), (tools.address(receiver), tools.port))
        if direction == "up":
            arrived = tools.receive_all(far, tools.patience_s, 2 * count)
        else:
            arrived = [
                *tools.receive_all(one, tools.patience_s, count),
                *tools.receive_all(two, tools.patience_s, count),
            ]
    assert len(arrived) == 2 * count
    times = sorted(moment for moment, _ in arrived)
    carried = (len(arrived) - 1) * (payload + tools.headers) * 8
    assert carried * 1e9 / (times[-1] - times[0]) <= 1.05 * rate_bps


@EACH
def test_the_own_link_of_a_member_is_shaped_too(
    shared: Any, tools: Any, emulator: Emulator
) -> None:
    lab = shared(emulator)
    lab.keeper.shape({ONE: (Shape(rate_bps=800_000, queue_bytes=10**6), Shape())}, 1)
    with lab.socket(FAR) as far, lab.socket(ONE) as one:
        for _ in range(50):
            one.sendto(bytes(1000), (tools.address(FAR), tools.port))
        arrived = tools.receive_all(far, tools.patience_s, 50)
    took_s = (arrived[-1][0] - arrived[0][0]) / 1e9
    assert took_s >= 49 * (1000 + tools.headers) * 8 / (1.05 * 800_000)


@EACH
def test_senders_of_large_frames_learn_the_mtu_of_a_router(
    shared: Any, tools: Any, emulator: Emulator
) -> None:
    lab = shared(emulator, mtu={FAR: 9000, ONE: 9000, TWO: 9000, ROUTER: 1400})
    tools.transfer(lab, ONE, TWO, 200_000)
    tools.transfer(lab, ONE, FAR, 200_000)
    tools.transfer(lab, FAR, ONE, 200_000)


def test_reverse_path_filtering_at_a_router_drops_no_packet(shared: Any, tools: Any) -> None:
    lab = shared(Emulator.TBF)
    with router_namespace(lab) as namespace, inside(namespace):
        Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("1")
    tools.say_hello(lab, ONE, FAR)
    tools.say_hello(lab, ONE, TWO)


@EACH
def test_a_packet_for_a_member_that_lost_its_link_does_not_loop(
    shared: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = shared(emulator, raised=False)
    lab.keeper.capture(ALL, tmp_path)
    with router_namespace(lab) as namespace:
        remove_interface(namespace, "l3")
    with lab.socket(FAR, socket.SOCK_STREAM) as client, pytest.raises(OSError, match="host") as no:
        client.connect((tools.address(ONE), 80))
    assert no.value.errno == errno.EHOSTUNREACH
    lab.keeper.capture_stop()
    passed = [data for _, _, data in read_records(tmp_path / f"{ROUTER}.pcap")]
    assert [data[23] for data in passed] == [socket.IPPROTO_TCP, socket.IPPROTO_ICMP]


@contextmanager
def router_namespace(
    lab: Any, holds: frozenset[str] | set[str] = frozenset({"eth0", "l3", "l4"})
) -> Iterator[int]:
    """The namespace of the router with these interfaces, found among the keeper's descriptors."""
    for entry in namespaces_held_by(lab.keeper):
        namespace = os.open(entry, os.O_RDONLY)
        try:
            if holds <= interfaces(namespace):
                yield namespace
                return
        finally:
            os.close(namespace)
    raise AssertionError("no router's namespace")


def namespaces_held_by(keeper: Keeper) -> list[Path]:
    found = []
    for entry in Path(f"/proc/{keeper.status()['pid']}/fd").iterdir():
        with suppress(FileNotFoundError):  # our own connection to it, just closed
            if str(entry.readlink()).startswith("net:"):
                found.append(entry)
    return found


def remove_interface(namespace: int, ifname: str) -> None:
    with netlink(namespace) as kernel:
        kernel.do([delete_link(ifname)])


@EACH
def test_members_lose_their_links_with_the_router_and_get_them_back(
    shared: Any, tools: Any, emulator: Emulator
) -> None:
    lab = shared(emulator)
    lab.keeper.unwire([ROUTER])
    status = lab.keeper.status()
    assert status["wired"] == status["captured"] == [FAR]
    assert status["nodes"].keys() == {FAR, ONE, TWO}
    lab.keeper.routers([ROUTER])
    lab.keeper.wire(emulator, links(tools, [TWO, ONE, ROUTER]))
    lab.keeper.capture([ONE, TWO, ROUTER], None)
    tools.say_hello(lab, ONE, FAR)
    tools.say_hello(lab, ONE, TWO)


@EACH
def test_a_member_that_goes_leaves_the_others_alone_and_can_come_back(
    shared: Any, tools: Any, emulator: Emulator
) -> None:
    lab = shared(emulator)
    lab.keeper.unwire([ONE])
    assert lab.keeper.status()["wired"] == [FAR, TWO, ROUTER]
    tools.say_hello(lab, TWO, FAR)
    with lab.socket(FAR, socket.SOCK_STREAM) as client, pytest.raises(OSError, match="unreachable"):
        client.connect((tools.address(ONE), 80))
    pids, _ = lab.keeper.spawn([Program(ONE, ("sleep", "600"), lab.place.folder / "log", {})])
    lab.pids.update(pids)
    lab.keeper.wire(emulator, links(tools, [ONE]))
    lab.keeper.capture([ONE], None)
    tools.say_hello(lab, ONE, FAR)


def test_all_links_can_be_wired_again_after_the_relay_has_died(shared: Any, tools: Any) -> None:
    lab = shared(Emulator.RELAY)
    (relay,) = [process for process in marked(lab.place) if process.role == "relay"]
    os.kill(relay.pid, signal.SIGKILL)
    tools.wait_for(lambda: lab.keeper.status()["wired"] == [])
    lab.keeper.wire(Emulator.RELAY, links(tools, [FAR, ROUTER]))
    assert lab.keeper.status()["wired"] == [FAR, ROUTER]  # not the members' old ones
    lab.keeper.wire(Emulator.RELAY, links(tools, MEMBERS))
    lab.keeper.capture(ALL, None)
    tools.say_hello(lab, ONE, FAR)


def test_a_wrong_router_is_refused_before_any_link_is_created(shared: Any, tools: Any) -> None:
    lab = shared(Emulator.TBF)
    lab.keeper.unwire([ONE, ROUTER])
    lab.keeper.spawn([Program(ONE, ("sleep", "600"), lab.place.folder / "log", {})])
    with pytest.raises(ControlError, match="no such router"):
        lab.keeper.wire(Emulator.TBF, links(tools, [ONE]))
    with pytest.raises(ControlError, match="n1 is a node with a process"):
        lab.keeper.routers([FAR])
    with pytest.raises(ControlError, match="no such router"):
        lab.keeper.wire(Emulator.TBF, [replace(tools.link(ONE), behind=FAR)])
    lab.keeper.routers([ROUTER, "n7"])
    with pytest.raises(ControlError, match="n2, which has no link yet"):
        lab.keeper.wire(Emulator.TBF, links(tools, [ONE]))
    ring = [replace(tools.link(ROUTER), behind="n7"), replace(tools.link("n7"), behind=ROUTER)]
    with pytest.raises(ControlError, match="n2 would be behind itself: n2 -> n7 -> n2"):
        lab.keeper.wire(Emulator.TBF, ring)
    assert lab.keeper.status()["wired"] == [FAR]


CHAIN = {FAR: None, OUTER: None, ROUTER: OUTER, ONE: ROUTER, TWO: OUTER}  # node -> its router


@pytest.fixture
def chained(wired: Any, tools: Any) -> Callable[..., Any]:
    """chained(emulator): n3 behind the router n2; n2 and n4 behind the router n5; n1 somewhere else."""

    def make(emulator: Emulator, folder: Path | None = None) -> Any:
        lab = wired(emulator, [FAR, ONE, TWO], raised=False, links=[])
        lab.keeper.routers([ROUTER, OUTER])
        lab.keeper.wire(emulator, chain(tools, [ONE, ROUTER, TWO, OUTER, FAR]))
        lab.keeper.capture([*CHAIN], folder)
        return lab

    return make


def chain(tools: Any, names: list[str]) -> list[Any]:
    return [replace(tools.link(name), behind=CHAIN[name]) for name in names]


@EACH
def test_nodes_behind_two_routers_reach_all_nodes_and_each_link_has_its_capture(
    chained: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = chained(emulator, tmp_path)
    assert lab.keeper.status()["wired"] == [FAR, ONE, TWO, ROUTER, OUTER]
    for one, other in ((ONE, FAR), (FAR, ONE), (ONE, TWO), (TWO, ONE)):
        tools.say_hello(lab, one, other)
        tools.transfer(lab, one, other, 20_000)
    lab.keeper.capture_stop()
    ends = {
        name: {
            (last(data[26:30]), last(data[30:34]))
            for _, _, data in read_records(tmp_path / f"{name}.pcap")
        }
        for name in CHAIN
    }
    far, beside = {("n3", "n1"), ("n1", "n3")}, {("n3", "n4"), ("n4", "n3")}
    assert ends[ONE] == ends[ROUTER] == far | beside
    assert ends[TWO] == beside
    assert ends[OUTER] == ends[FAR] == far, "those behind the outer router meet in it"


@EACH
def test_a_link_of_an_outer_router_is_shaped_and_its_cut_cuts_everything_behind_it_off(
    chained: Any, tools: Any, emulator: Emulator
) -> None:
    lab = chained(emulator)
    slow = Shape(rate_bps=800_000, queue_bytes=10**6)
    lab.keeper.shape({OUTER: (slow, slow)}, 1)
    with lab.socket(FAR) as far, lab.socket(ONE) as one:
        for _ in range(50):
            one.sendto(bytes(1000), (tools.address(FAR), tools.port))
        arrived = tools.receive_all(far, tools.patience_s, 50)
    assert len(arrived) == 50
    took_s = (arrived[-1][0] - arrived[0][0]) / 1e9
    assert took_s >= 49 * (1000 + tools.headers) * 8 / (1.05 * 800_000)
    open_, cut = DirectionState(slow), DirectionState(slow, cut=True)
    lab.keeper.change_links({OUTER: LinkState(cut, cut)})
    with lab.socket(FAR) as far, lab.socket(ONE) as one, lab.socket(TWO) as two:
        one.sendto(b"lost", (tools.address(FAR), tools.port))
        far.sendto(b"lost", (tools.address(ONE), tools.port))
        two.sendto(b"lost", (tools.address(FAR), tools.port))
        one.sendto(b"inside", (tools.address(TWO), tools.port))
        assert two.recv(100) == b"inside"
        if emulator is Emulator.RELAY:  # the kernel has dropped them by then
            tools.wait_for(lambda: dropped(lab, OUTER) == 3)
        lab.keeper.change_links({OUTER: LinkState(open_, open_)})
        one.sendto(b"again", (tools.address(FAR), tools.port))
        assert far.recv(100) == b"again"
        far.sendto(b"again", (tools.address(ONE), tools.port))
        assert one.recv(100) == b"again"


def dropped(lab: Any, link: str) -> int:
    return sum(way["dropped_cut"] for way in lab.keeper.link_counts()[link].values())


@EACH
def test_packets_for_a_router_that_lost_its_link_do_not_loop(
    chained: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = chained(emulator, tmp_path)
    with router_namespace(lab, {"eth0", "l2", "l4"}) as namespace:
        remove_interface(namespace, "l2")
    with lab.socket(FAR, socket.SOCK_STREAM) as client, pytest.raises(OSError, match="host") as no:
        client.connect((tools.address(ONE), 80))
    assert no.value.errno == errno.EHOSTUNREACH
    tools.say_hello(lab, FAR, TWO)
    lab.keeper.capture_stop()
    passed = [data for _, _, data in read_records(tmp_path / f"{OUTER}.pcap")]
    protocols = [data[23] for data in passed]
    assert protocols.count(socket.IPPROTO_TCP) == protocols.count(socket.IPPROTO_ICMP) == 1


@EACH
def test_everything_behind_an_outer_router_loses_its_link_with_it_and_gets_it_back(
    chained: Any, tools: Any, emulator: Emulator
) -> None:
    lab = chained(emulator)
    lab.keeper.unwire([OUTER])
    assert lab.keeper.status()["wired"] == [FAR]
    lab.keeper.routers([OUTER])
    lab.keeper.wire(emulator, chain(tools, [ONE, TWO, ROUTER, OUTER]))
    lab.keeper.capture([ONE, TWO, ROUTER, OUTER], None)
    tools.say_hello(lab, ONE, FAR)
    tools.say_hello(lab, FAR, TWO)
    lab.keeper.unwire([ROUTER])
    assert lab.keeper.status()["wired"] == [FAR, TWO, OUTER]
    tools.say_hello(lab, TWO, FAR)
    lab.keeper.routers([ROUTER])
    lab.keeper.wire(emulator, chain(tools, [ONE, ROUTER]))
    lab.keeper.capture([ONE, ROUTER], None)
    tools.say_hello(lab, ONE, TWO)
    tools.say_hello(lab, FAR, ONE)


def test_a_router_needs_no_process_and_goes_with_the_keeper(lab_places: Any, tools: Any) -> None:
    place = lab_places()
    keeper = Keeper.launch(place, "run")
    keeper.routers([ROUTER])
    keeper.routers([ROUTER])
    assert keeper.status()["nodes"] == {ROUTER: {"pid": None, "running": True, "exit_code": None}}
    with pytest.raises(ControlError, match="has no process"):
        keeper.signal([ROUTER], signal.SIGTERM)
    _, failed = keeper.spawn([Program(ROUTER, ("sleep", "600"), place.folder / "log", {})])
    assert failed == {ROUTER: "n2 is a router, which has no process"}
    keeper.unwire([ROUTER])
    assert keeper.status()["nodes"] == {}


def test_more_links_than_a_bridge_has_ports(lab_places: Any, tools: Any) -> None:
    count = 1_100
    keeper = Keeper.launch(lab_places(), "run")
    names = [f"n{number}" for number in range(1, count + 1)]
    keeper.routers(names)
    keeper.wire(Emulator.TBF, [spread_out(tools, number) for number in range(1, count + 1)])
    keeper.capture(names, None)
    assert len(keeper.status()["captured"]) == count
    found = namespaces_held_by(keeper)
    assert len(found) == count
    first, final = (os.open(entry, os.O_RDONLY) for entry in (found[0], found[-1]))
    try:
        assert hello(first, final)
    finally:
        os.close(first)
        os.close(final)


def spread_out(tools: Any, number: int) -> Any:
    return replace(
        tools.link("n1"),
        node=f"n{number}",
        number=number,
        address=f"10.77.{number >> 8}.{number & 255}",
        mac=f"02:74:62:00:{number >> 8:02x}:{number & 255:02x}",
    )


def hello(one: int, other: int) -> bool:
    """Send one packet from namespace to namespace."""
    with inside(other):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("0.0.0.0", 5000))
        address = own_address()
    receiver.settimeout(60)
    with inside(one):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender, receiver:
        sender.sendto(b"hello", (address, 5000))
        return receiver.recv(100) == b"hello"


def own_address() -> str:
    """The address that this namespace sends from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("10.77.255.254", 9))
        return str(sock.getsockname()[0])
