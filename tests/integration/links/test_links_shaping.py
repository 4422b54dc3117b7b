"""Shapers on real links. Upper bounds are strict; lower ones are wide, because a busy machine is late."""

import time
from itertools import pairwise
from typing import Any

import pytest

from testbed.links.model import direction_random
from testbed.links.probe import probe_machine
from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root]

RATE_BPS = 800_000  # 100 kB/s
PAYLOAD = 1000
COUNT = 150
NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])


def burst(lab: Any, tools: Any, sender: str, receiver: str, count: int) -> list[tuple[int, bytes]]:
    """Send all packets at once; return those that arrive, with the kernel's times."""
    tools.say_hello(lab, sender, receiver)
    with lab.socket(sender) as one, lab.socket(receiver) as other:
        for number in range(count):
            one.sendto(
                number.to_bytes(4) + bytes(PAYLOAD - 4), (tools.address(receiver), tools.port)
            )
        found: list[tuple[int, bytes]] = tools.receive_all(other, 1.5, count)
    return found


def rate_of(arrivals: list[tuple[int, bytes]], headers: int) -> float:
    """Bits a second on the wire, from the first arrival to the last."""
    carried = sum(len(data) + headers for _, data in arrivals[1:])
    return carried * 8e9 / (arrivals[-1][0] - arrivals[0][0])


@EACH
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_saturated_link_runs_at_its_rate(
    wired: Any, tools: Any, emulator: Emulator, direction: str
) -> None:
    lab = wired(emulator, ["n1", "n2"])
    limited, free = Shape(rate_bps=RATE_BPS, queue_bytes=10**6), Shape()
    up, down = (limited, free) if direction == "up" else (free, limited)
    lab.keeper.shape({"n1": (up, free), "n2": (free, down)}, 1)
    arrivals = burst(lab, tools, "n1", "n2", COUNT)
    assert [int.from_bytes(data[:4]) for _, data in arrivals] == list(range(COUNT))
    achieved = rate_of(arrivals, tools.headers)
    assert achieved <= 1.05 * RATE_BPS
    assert achieved >= (0.7 if emulator is Emulator.RELAY else 0.95) * RATE_BPS


@EACH
def test_a_full_queue_drops_packets(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab = wired(emulator, ["n1", "n2"])
    lab.keeper.shape({"n1": (Shape(rate_bps=RATE_BPS, queue_bytes=20_000), Shape())}, 1)
    arrivals = burst(lab, tools, "n1", "n2", COUNT)
    fitting = 20_000 // (PAYLOAD + tools.headers)
    assert fitting <= len(arrivals) <= fitting + 20  # and a few that found queue space meanwhile


def test_delay_and_serialisation_add_up_on_the_relay(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    lab.keeper.shape({"n1": (Shape(rate_bps=80_000, delay_s=0.05), Shape())}, 1)
    tools.say_hello(lab, "n1", "n2")
    least_ns = 50e6 + (PAYLOAD + tools.headers) * 8e9 / 80_000
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for _ in range(3):
            before = time.time_ns()
            one.sendto(bytes(PAYLOAD), (tools.address("n2"), tools.port))
            ((arrived_ns, _),) = tools.receive_all(other, 5.0, count=1)
            # A lone packet takes its full time, because there is no stored credit.
            assert arrived_ns - before >= least_ns
            assert arrived_ns - before < least_ns + 500e6


def test_losses_follow_the_seed(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    tools.say_hello(lab, "n1", "n2")
    lab.keeper.shape({"n1": (Shape(loss=0.3), Shape())}, seed=7)
    random = direction_random(7, "n1", "up")
    expected = [number for number in range(100) if random.random() >= 0.3]
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for number in range(100):
            one.sendto(number.to_bytes(4), (tools.address("n2"), tools.port))
        arrived = [int.from_bytes(data) for _, data in tools.receive_all(other, quiet_s=1.0)]
    assert arrived == expected
    assert lab.keeper.counters()["dropped_loss"] == 100 - len(expected)


def test_jitter_keeps_the_order(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    lab.keeper.shape({"n1": (Shape(delay_s=0.03, jitter_s=0.03), Shape())}, 1)
    arrivals = burst(lab, tools, "n1", "n2", 100)
    numbers = [int.from_bytes(data[:4]) for _, data in arrivals]
    assert numbers == list(range(100))
    assert all(a <= b for (a, _), (b, _) in pairwise(arrivals))


@EACH
def test_a_link_changes_while_it_runs(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab = wired(emulator, ["n1", "n2"])
    for rate_bps in (RATE_BPS, 4 * RATE_BPS):
        lab.keeper.shape({"n1": (Shape(rate_bps=rate_bps, queue_bytes=10**6), Shape())}, 1)
        assert rate_of(burst(lab, tools, "n1", "n2", COUNT), tools.headers) <= 1.05 * rate_bps
    lab.keeper.shape({"n1": (Shape(), Shape())}, 1)
    assert len(burst(lab, tools, "n1", "n2", 20)) == 20


def test_the_probe_finds_the_capabilities_of_this_machine() -> None:
    found = probe_machine()
    assert found.namespaces
    assert found.reason
    assert found.capabilities.tbf
