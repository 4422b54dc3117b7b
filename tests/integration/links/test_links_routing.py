"""The core as a router: it sends no ARP requests, lets nothing out, and answers packets that are too large."""

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.records import read_records
from testbed.control import ControlError
from testbed.keeper.client import Keeper, Program
from testbed.links.namespaces import inside
from testbed.links.netlink import netlink
from testbed.links.wiring import interfaces, running
from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root]

NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14
GATEWAY = "10.77.255.254"
SIOCGIFADDR = 0x8915
SYN = 0x02


@contextmanager
def namespace_of(pid: int) -> Iterator[int]:
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        yield namespace
    finally:
        os.close(namespace)


def frames(path: Path) -> list[bytes]:
    return [data for _, _, data in read_records(path)]


def kind_of(frame: bytes) -> str:
    if frame[12:14] != b"\x08\x00":
        return f"ethertype {frame[12:14].hex()}"
    if frame[23] != socket.IPPROTO_TCP:
        return f"protocol {frame[23]}"
    return "SYN" if frame[14 + 20 + 13] == SYN else "TCP"


@EACH
def test_the_first_packet_on_a_fresh_link_is_the_first_one_sent(
    wired: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = wired(emulator, ["n1", "n2", "n3"], raised=False)
    lab.keeper.capture(["n1", "n2", "n3"], tmp_path)
    tools.transfer(lab, "n1", "n2", 10_000)
    lab.keeper.capture_stop()
    for node in ("n1", "n2"):
        kinds = [kind_of(frame) for frame in frames(tmp_path / f"{node}.pcap")]
        assert kinds[0] == "SYN"  # no ARP request was needed
        assert set(kinds) == {"SYN", "TCP"}
    assert frames(tmp_path / "n3.pcap") == []


@EACH
def test_mac_addresses_identify_the_sender_of_a_packet(
    wired: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = wired(emulator, ["n1", "n2"], raised=False)
    lab.keeper.capture(["n1", "n2"], tmp_path)
    tools.say_hello(lab, "n1", "n2")
    lab.keeper.capture_stop()
    core, node = bytes.fromhex("027462000000"), bytes.fromhex("027462000001")
    up, down = frames(tmp_path / "n1.pcap")
    assert (up[0:6], up[6:12]) == (core, node)
    assert (down[0:6], down[6:12]) == (node, core)


def refusal(lab: Any, node: str, to: str) -> int:
    """The error of a connection to this address: the node's own kernel refuses it, or the core does."""
    with lab.socket(node, socket.SOCK_STREAM) as client, pytest.raises(OSError, match=r".") as no:
        client.connect((to, 9))
    return int(no.value.errno or 0)


@EACH
def test_nothing_of_a_lab_reaches_the_outside(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab, other = wired(emulator, ["n1", "n2"]), wired(emulator, ["n1", "n2", "n3"])
    routes = Path(f"/proc/{lab.pids['n1']}/net/route").read_text().splitlines()[1:]
    (only,) = (line.split()[:3] for line in routes)
    assert only == ["eth0", "00004D0A", "FEFF4D0A"]  # 10.77.0.0 via 10.77.255.254; no default
    for outside in ("192.0.2.1", "198.51.100.7", "203.0.113.9", *addresses_of_this_machine()):
        assert refusal(lab, "n1", outside) == errno.ENETUNREACH
    assert other.keeper.status()["wired"] == ["n1", "n2", "n3"]
    assert refusal(lab, "n1", tools.address("n3")) == errno.ENETUNREACH  # another lab has this node


def addresses_of_this_machine() -> list[str]:
    """All addresses of this machine but its loopback, of which each namespace has its own."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in interfaces():
            request = struct.pack("16s24x", name.encode())
            with suppress(OSError):  # the interface has none
                found.append(socket.inet_ntoa(fcntl.ioctl(sock, SIOCGIFADDR, request)[20:24]))
    return [address for address in found if not address.startswith("127.")]


@EACH
def test_connections_to_a_missing_node_fail_at_once(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2"])
    lab.keeper.unwire(["n2"])
    assert refusal(lab, "n1", tools.address("n2")) == errno.ENETUNREACH


@EACH
def test_large_frames_go_from_end_to_end(
    wired: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = wired(emulator, ["n1", "n2"], raised=False, mtu=9000)
    lab.shape_all(Shape(rate_bps=1e8))
    lab.keeper.capture(["n1", "n2"], tmp_path)
    tools.transfer(lab, "n1", "n2", 300_000)
    lab.keeper.capture_stop()
    for node in ("n1", "n2"):
        assert max(map(len, frames(tmp_path / f"{node}.pcap"))) == 9014


@EACH
def test_a_sender_of_too_large_frames_learns_the_mtu_of_the_receiver(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2"], mtu={"n1": 9000, "n2": 1400})
    with lab.socket("n1") as large, lab.socket("n2") as small:
        large.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        large.connect((tools.address("n2"), tools.port))
        assert large.getsockopt(socket.IPPROTO_IP, IP_MTU) == 9000
        large.send(bytes(8000))
        with pytest.raises(OSError, match="Message too long"):
            large.recv(100)
        assert large.getsockopt(socket.IPPROTO_IP, IP_MTU) == 1400
        large.send(bytes(1400 - 28))
        assert len(small.recv(10_000)) == 1400 - 28
    tools.transfer(lab, "n1", "n2", 300_000)
    tools.transfer(lab, "n2", "n1", 300_000)


@EACH
def test_reverse_path_filtering_drops_no_packet(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab = wired(emulator, ["n1", "n2"])
    for pid in (*lab.pids.values(), lab.keeper.status()["pid"]):
        with namespace_of(pid) as namespace, inside(namespace):
            Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("1")
    tools.say_hello(lab, "n1", "n2")


def test_only_the_core_forwards(wired: Any) -> None:
    lab = wired(Emulator.TBF, ["n1"])
    for pid, ifname, forwards in (
        (lab.keeper.status()["pid"], "l1", "1"),
        (lab.pids["n1"], "eth0", "0"),
    ):
        with namespace_of(pid) as namespace, inside(namespace):
            conf = Path(f"/proc/sys/net/ipv4/conf/{ifname}/forwarding")
            assert conf.read_text().strip() == forwards


def test_no_node_can_have_the_gateways_address(lab_places: Any, tools: Any) -> None:
    place = lab_places()
    keeper = Keeper.launch(place, "run")
    keeper.spawn([Program("n1", ("sleep", "600"), place.folder / "log", {})])
    with pytest.raises(ControlError, match=f"n1 cannot have {GATEWAY}"):
        keeper.wire(Emulator.TBF, [replace(tools.link("n1"), address=GATEWAY)])
    assert keeper.status()["wired"] == []


def test_capture_returns_when_the_kernel_has_raised_the_link(wired: Any) -> None:
    lab = wired(Emulator.TBF, ["n1"], raised=False)
    with namespace_of(lab.keeper.status()["pid"]) as namespace:
        with inside(namespace):
            index = socket.if_nametoindex("l1")
        with netlink(namespace) as kernel:
            assert index not in running(kernel)
            lab.keeper.capture(["n1"], None)
            assert index in running(kernel)
