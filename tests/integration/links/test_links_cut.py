"""A cut direction of a link carries no packets; the other direction and the other links do not change."""

from pathlib import Path
from typing import Any

import pytest

from testbed.capture.records import read_records
from testbed.links.changes import DirectionState, LinkState
from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root]

NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])
SLOW = Shape(rate_bps=1e6)
LOST_S = 0.3  # a packet that has not come after so long counts as lost


def send(
    lab: Any, tools: Any, sender: str, receiver: str, text: bytes, quiet_s: float | None = None
) -> list[bytes]:
    """Send one packet; return the packets that arrive."""
    with lab.socket(sender) as one, lab.socket(receiver) as other:
        one.sendto(text, (tools.address(receiver), tools.port))
        arrived = tools.receive_all(other, quiet_s or tools.patience_s, count=1)
        return [data for _, data in arrived]


@EACH
@pytest.mark.parametrize("shape", [Shape(), SLOW], ids=["free", "shaped"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_one_direction_is_cut_and_comes_back(
    wired: Any, tools: Any, emulator: Emulator, shape: Shape, direction: str
) -> None:
    lab = wired(emulator, ["n1", "n2"])
    lab.shape_all(shape)
    there, back = ("n1", "n2"), ("n2", "n1")
    cut_way, open_way = (there, back) if direction == "up" else (back, there)
    whole = LinkState(DirectionState(shape), DirectionState(shape))
    cut = {
        "up": DirectionState(shape, direction == "up"),
        "down": DirectionState(shape, direction == "down"),
    }
    lab.keeper.change_links({"n1": LinkState(**cut)})
    assert send(lab, tools, *cut_way, b"lost", quiet_s=LOST_S) == []
    assert send(lab, tools, *open_way, b"through") == [b"through"]
    assert lab.keeper.links()["n1"] == LinkState(**cut)
    lab.keeper.change_links({"n1": whole})
    assert send(lab, tools, *cut_way, b"again") == [b"again"]
    assert lab.keeper.links()["n1"] == whole


@EACH
def test_packets_in_the_queue_of_a_link_are_lost_when_it_is_cut(
    wired: Any, tools: Any, emulator: Emulator
) -> None:
    lab = wired(emulator, ["n1", "n2"])
    slow = Shape(rate_bps=80_000, queue_bytes=10**6)
    lab.keeper.shape({"n1": (slow, Shape())}, 1)
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for number in range(150):  # 15 s
            one.sendto(number.to_bytes(4) + bytes(1000), (tools.address("n2"), tools.port))
        assert tools.receive_all(other, tools.patience_s, count=1)
        lab.keeper.change_links(
            {"n1": LinkState(DirectionState(slow, cut=True), DirectionState(Shape()))}
        )
        lab.keeper.change_links({"n1": LinkState(DirectionState(slow), DirectionState(Shape()))})
        one.sendto(b"last", (tools.address("n2"), tools.port))
        arrived: list[bytes] = []
        while b"last" not in arrived:
            ((_, data),) = tools.receive_all(other, tools.patience_s, count=1)
            arrived.append(data)
        arrived += [data for _, data in tools.receive_all(other, quiet_s=1.0)]
    assert arrived[-1] == b"last"
    assert len(arrived) < 140


@EACH
def test_packets_lost_at_a_cut_are_in_the_captures_of_the_other_links_only(
    wired: Any, tools: Any, emulator: Emulator, tmp_path: Path
) -> None:
    lab = wired(emulator, ["n1", "n2"], raised=False)
    lab.shape_all(Shape())
    lab.keeper.capture(["n1", "n2"], tmp_path)
    whole, cut = DirectionState(Shape()), DirectionState(Shape(), cut=True)
    lab.keeper.change_links({"n1": LinkState(whole, cut)})
    assert send(lab, tools, "n2", "n1", b"lost", quiet_s=LOST_S) == []
    assert send(lab, tools, "n1", "n2", b"through") == [b"through"]
    lab.keeper.change_links({"n1": LinkState(whole, whole)})
    assert send(lab, tools, "n2", "n1", b"again") == [b"again"]
    lab.keeper.capture_stop()
    captured = {
        name: [data[42:] for _, _, data in read_records(tmp_path / f"{name}.pcap")]
        for name in ("n1", "n2")
    }
    assert captured == {"n1": [b"through", b"again"], "n2": [b"lost", b"through", b"again"]}


def test_the_relay_counts_by_link_and_direction(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    lab.shape_all(Shape())
    assert send(lab, tools, "n1", "n2", b"through") == [b"through"]
    lab.keeper.change_links(
        {"n1": LinkState(DirectionState(Shape(), cut=True), DirectionState(Shape()))}
    )
    assert send(lab, tools, "n1", "n2", b"lost", quiet_s=LOST_S) == []
    lab.keeper.change_links(
        {"n1": LinkState(DirectionState(Shape(loss=1.0)), DirectionState(Shape()))}
    )
    assert send(lab, tools, "n1", "n2", b"lost", quiet_s=LOST_S) == []
    zero = {"forwarded": 0, "dropped_queue": 0, "dropped_loss": 0, "dropped_cut": 0}
    expected = {
        "n1": {
            "up": {**zero, "forwarded": 1, "dropped_loss": 1, "dropped_cut": 1},
            "down": zero,
        },
        "n2": {"up": zero, "down": {**zero, "forwarded": 1}},
    }
    tools.wait_for(lambda: lab.keeper.link_counts()["n1"]["up"]["dropped_loss"])
    assert lab.keeper.link_counts() == expected
    counters = lab.keeper.counters(restart=True)
    assert (counters["forwarded"], counters["dropped_loss"], counters["dropped_cut"]) == (2, 1, 1)
    assert counters["late_max_s"] > 0
    again = lab.keeper.counters()
    assert again["late_max_s"] == 0.0
    assert again["forwarded"] == 2


def test_links_of_the_kernel_are_not_counted(wired: Any) -> None:
    lab = wired(Emulator.TBF, ["n1"])
    assert lab.keeper.counters(restart=True) is None
    assert lab.keeper.link_counts() == {}
