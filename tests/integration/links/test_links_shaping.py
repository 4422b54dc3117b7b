"""Shapers on real links: no packet is early, and none is late but for the time that the relay waits for a processor."""

import time
from itertools import pairwise
from typing import Any

import pytest

from support.processor_wait import ProcessorWait
from testbed.keeper.processes import marked
from testbed.links.model import direction_random
from testbed.links.probe import probe_machine
from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root]

RATE_BPS = 800_000  # 100 kB/s
PAYLOAD = 1000
COUNT = 150
NETEM = pytest.param(Emulator.NETEM, marks=pytest.mark.netem)
EACH = pytest.mark.parametrize("emulator", [Emulator.TBF, Emulator.RELAY, NETEM])


def burst(
    lab: Any, tools: Any, sender: str, receiver: str, count: int, at_least: int | None = None
) -> tuple[list[tuple[int, bytes]], float]:
    """Send all packets at once; return those that arrive, with the kernel's times, and how long it took to send.

    With `at_least`, perhaps only so many arrive.
    """
    tools.say_hello(lab, sender, receiver)
    with lab.socket(sender) as one, lab.socket(receiver) as other:
        began = time.monotonic()
        for number in range(count):
            one.sendto(
                number.to_bytes(4) + bytes(PAYLOAD - 4), (tools.address(receiver), tools.port)
            )
        sent_s = time.monotonic() - began
        found = tools.receive_all(other, tools.patience_s, at_least or count)
        if at_least:
            found += tools.receive_all(other, 1.5, count - at_least)
        return found, sent_s


def relay_waits(lab: Any) -> ProcessorWait:
    """How long the relay, if there is one, waits for a processor from now on."""
    return ProcessorWait([each.pid for each in marked(lab.place) if each.role == "relay"])


def rate_of(arrivals: list[tuple[int, bytes]], headers: int, waited_s: float = 0.0) -> float:
    """Bits a second on the wire, from the first arrival to the last, without the time that the relay waited."""
    carried = sum(len(data) + headers for _, data in arrivals[1:])
    return carried * 8e9 / max(1, arrivals[-1][0] - arrivals[0][0] - waited_s * 1e9)


@EACH
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_saturated_link_runs_at_its_rate(
    wired: Any, tools: Any, emulator: Emulator, direction: str
) -> None:
    lab = wired(emulator, ["n1", "n2"])
    limited, free = Shape(rate_bps=RATE_BPS, queue_bytes=10**6), Shape()
    up, down = (limited, free) if direction == "up" else (free, limited)
    lab.keeper.shape({"n1": (up, free), "n2": (free, down)}, 1)
    waits = relay_waits(lab)
    arrivals, _ = burst(lab, tools, "n1", "n2", COUNT)
    assert [int.from_bytes(data[:4]) for _, data in arrivals] == list(range(COUNT))
    assert rate_of(arrivals, tools.headers) <= 1.05 * RATE_BPS
    achieved = rate_of(arrivals, tools.headers, waits.seconds())
    assert achieved >= (0.7 if emulator is Emulator.RELAY else 0.95) * RATE_BPS


@EACH
def test_a_full_queue_drops_packets(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab = wired(emulator, ["n1", "n2"])
    lab.keeper.shape({"n1": (Shape(rate_bps=RATE_BPS, queue_bytes=20_000), Shape())}, 1)
    frame = PAYLOAD + tools.headers
    fitting = 20_000 // frame
    waits = relay_waits(lab)
    arrivals, sent_s = burst(lab, tools, "n1", "n2", COUNT, at_least=fitting)
    freed = RATE_BPS / 8 * (sent_s + waits.seconds()) / frame  # places in the queue, meanwhile
    assert fitting <= len(arrivals) <= fitting + 20 + freed


def test_delay_and_serialisation_add_up_on_the_relay(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    lab.keeper.shape({"n1": (Shape(rate_bps=80_000, delay_s=0.05), Shape())}, 1)
    tools.say_hello(lab, "n1", "n2")
    least_ns = 50e6 + (PAYLOAD + tools.headers) * 8e9 / 80_000
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for _ in range(3):
            before, waits = time.time_ns(), relay_waits(lab)
            one.sendto(bytes(PAYLOAD), (tools.address("n2"), tools.port))
            ((arrived_ns, _),) = tools.receive_all(other, tools.patience_s, count=1)
            # A lone packet takes its full time, because there is no stored credit.
            assert arrived_ns - before >= least_ns
            assert arrived_ns - before < least_ns + 500e6 + waits.seconds() * 1e9


def test_losses_follow_the_seed(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    tools.say_hello(lab, "n1", "n2")
    lab.keeper.shape({"n1": (Shape(loss=0.3), Shape())}, seed=7)
    random = direction_random(7, "n1", "up")
    expected = [number for number in range(100) if random.random() >= 0.3]
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for number in range(100):
            one.sendto(number.to_bytes(4), (tools.address("n2"), tools.port))
        found = tools.receive_all(other, tools.patience_s, count=len(expected))
        found += tools.receive_all(other, quiet_s=1.0)
    assert [int.from_bytes(data) for _, data in found] == expected
    tools.wait_for(lambda: lab.keeper.counters()["dropped_loss"] >= 100 - len(expected))
    assert lab.keeper.counters()["dropped_loss"] == 100 - len(expected)


def test_jitter_keeps_the_order(wired: Any, tools: Any) -> None:
    lab = wired(Emulator.RELAY, ["n1", "n2"])
    lab.keeper.shape({"n1": (Shape(delay_s=0.03, jitter_s=0.03), Shape())}, 1)
    arrivals, _ = burst(lab, tools, "n1", "n2", 100)
    numbers = [int.from_bytes(data[:4]) for _, data in arrivals]
    assert numbers == list(range(100))
    assert all(a <= b for (a, _), (b, _) in pairwise(arrivals))


@EACH
def test_a_link_changes_while_it_runs(wired: Any, tools: Any, emulator: Emulator) -> None:
    lab = wired(emulator, ["n1", "n2"])
    for rate_bps in (RATE_BPS, 4 * RATE_BPS):
        lab.keeper.shape({"n1": (Shape(rate_bps=rate_bps, queue_bytes=10**6), Shape())}, 1)
        arrivals, _ = burst(lab, tools, "n1", "n2", COUNT)
        assert rate_of(arrivals, tools.headers) <= 1.05 * rate_bps
    lab.keeper.shape({"n1": (Shape(), Shape())}, 1)
    assert len(burst(lab, tools, "n1", "n2", 20)[0]) == 20


def test_the_probe_finds_the_capabilities_of_this_machine() -> None:
    found = probe_machine()
    assert found.namespaces
    assert found.reason
    assert found.capabilities.tbf
