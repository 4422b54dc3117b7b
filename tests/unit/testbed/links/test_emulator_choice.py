"""The choice of the emulator, for each request and machine."""

import pytest

from testbed.errors import InputError, MissingCapability
from testbed.links.emulator import Capabilities, choose
from testbed.topology.model import Emulator, Shape

RATE = [Shape(rate_bps=1e6)]
DELAY = [Shape(rate_bps=1e6), Shape(delay_s=0.1)]
EVERYTHING = Capabilities(netem=True, tbf=True)
NO_NETEM = Capabilities(netem=False, tbf=True)
NO_TAPS = Capabilities(netem=False, tbf=True, tun="cannot open /dev/net/tun: Permission denied")


@pytest.mark.parametrize(
    ("asked", "shapes", "machine", "serves"),
    [
        (Emulator.AUTO, DELAY, EVERYTHING, Emulator.NETEM),
        (Emulator.AUTO, RATE, EVERYTHING, Emulator.NETEM),
        (Emulator.AUTO, DELAY, NO_NETEM, Emulator.RELAY),
        (Emulator.AUTO, RATE, NO_NETEM, Emulator.RELAY),
        (Emulator.AUTO, RATE, NO_TAPS, Emulator.TBF),
        (Emulator.TBF, RATE, EVERYTHING, Emulator.TBF),
        (Emulator.RELAY, DELAY, EVERYTHING, Emulator.RELAY),
        (Emulator.NETEM, DELAY, EVERYTHING, Emulator.NETEM),
    ],
)
def test_the_best_emulator_that_does_all_that_is_asked_serves(
    asked: Emulator, shapes: list[Shape], machine: Capabilities, serves: Emulator
) -> None:
    chosen, reason = choose(asked, shapes, machine)
    assert chosen is serves
    assert reason


@pytest.mark.parametrize(
    "shape", [Shape(delay_s=0.1), Shape(delay_s=0.1, jitter_s=0.05), Shape(loss=0.01)]
)
def test_tbf_is_refused_for_links_that_need_more_than_a_rate(shape: Shape) -> None:
    with pytest.raises(InputError, match="only limits rates") as refused:
        choose(Emulator.TBF, [*RATE, shape], EVERYTHING)
    assert "auto" in refused.value.hint


def test_netem_is_refused_where_the_kernel_has_none() -> None:
    with pytest.raises(MissingCapability, match="no netem") as refused:
        choose(Emulator.NETEM, RATE, NO_NETEM)
    assert "modprobe sch_netem" in refused.value.hint


@pytest.mark.parametrize("asked", [Emulator.AUTO, Emulator.RELAY])
def test_the_error_on_a_machine_without_taps_has_a_hint(asked: Emulator) -> None:
    with pytest.raises(MissingCapability, match="Permission denied") as refused:
        choose(asked, DELAY, NO_TAPS)
    assert "/dev/net/tun" in refused.value.hint
