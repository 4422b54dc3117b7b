"""Which direction is measured when, and how: no measurement disturbs another."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.calibration.exchange import Arrival, Exchange, Send
from testbed.links.calibration.measurement import (
    AT_ONCE_BPS,
    Effort,
    lanes_for_full,
    lanes_for_quick,
    quick,
    side_by_side,
    tcp_fills,
    trains_of,
    units,
)
from testbed.links.calibration.probes import (
    FAST_BPS,
    Lone,
    ProbedDirection,
    Purpose,
    losses,
    probed_directions,
    quick_lone,
    train_times,
)
from testbed.topology.model import Emulator, Profile, Shape
from testbed.topology.profiles import PROFILES


def directions_with(*shapes: Shape) -> tuple[ProbedDirection, ...]:
    """The `up` directions of links with these shapes."""
    profiles = [Profile(f"p{n}", shape, Shape()) for n, shape in enumerate(shapes)]
    lanes = [(p, tuple(f"{p.name}-{i}" for i in range(9))) for p in profiles]
    return tuple(
        probed for probed in probed_directions(Emulator.RELAY, lanes) if probed.direction == "up"
    )


rates = st.lists(st.floats(1e4, 1e9), min_size=1, max_size=12)


@given(rates)
def test_trains_of_fast_links_follow_one_another(speeds: list[float]) -> None:
    directions = directions_with(*(Shape(rate_bps=speed) for speed in speeds))
    trains = trains_of(directions)
    departs = train_times(trains, directions)
    assert departs.keys() == trains.keys()
    on_the_way = sorted(
        (at_s, trains[probed.number].lasts_s(probed.shape.rate_bps or 0))
        for probed in directions
        if (probed.shape.rate_bps or 0) >= FAST_BPS
        for at_s in departs[probed.number]
    )
    for (at_s, lasts_s), (next_s, _) in pairwise(on_the_way):
        assert next_s >= at_s + lasts_s
    slow = [departs[x.number] for x in directions if (x.shape.rate_bps or 0) < FAST_BPS]
    assert all(len(times) == 1 for times in slow)
    assert len({times[0] for times in slow}) == len(slow)


@given(rates)
def test_streams_at_the_same_time_are_slow_together_or_alone(speeds: list[float]) -> None:
    directions = directions_with(*(Shape(rate_bps=speed) for speed in speeds))
    groups = side_by_side(directions)
    assert sorted(probed.number for group in groups for probed in group) == [
        x.number for x in directions
    ]
    for group in groups:
        together = sum(probed.shape.rate_bps or 0 for probed in group)
        assert len(group) == 1 or together <= AT_ONCE_BPS


def test_tcp_is_not_asked_to_do_what_it_cannot() -> None:
    rate = 1e6
    fine, lossy, short, free = directions_with(
        Shape(rate_bps=rate, delay_s=0.1),
        Shape(rate_bps=rate, loss=0.2),
        Shape(rate_bps=rate, delay_s=0.5, queue_bytes=3_000),
        Shape(delay_s=0.1),
    )
    assert [tcp_fills(probed) for probed in (fine, lossy, short, free)] == [
        True,
        False,
        False,
        False,
    ]
    assert units((fine, lossy, short, free)) == 4


@pytest.mark.parametrize("name", PROFILES)
def test_tcp_fills_every_built_in_profile(name: str) -> None:
    assert all(
        tcp_fills(probed) for probed in probed_directions(Emulator.RELAY, [(PROFILES[name], ())])
    )


@pytest.mark.parametrize("name", PROFILES)
def test_there_are_lanes_for_all_that_is_sent(name: str) -> None:
    profile = PROFILES[name]
    lanes = tuple(str(n) for n in range(lanes_for_full(profile, Effort())))
    for probed in probed_directions(Emulator.RELAY, [(profile, lanes)]):
        alone = probed.scattered(Effort().lone_of(probed.shape))
        many = probed.scattered(losses(probed.shape), Purpose.LOSS) if probed.shape.loss else []
        assert {send.lane for send in alone + many} <= set(lanes[1:])
    few = tuple(str(n) for n in range(lanes_for_quick(profile)))
    for probed in probed_directions(Emulator.RELAY, [(profile, few)]):
        assert {send.lane for send in probed.scattered(quick_lone(probed.shape))} <= set(few[1:])


def test_lone_packets_never_share_a_lane_with_a_train() -> None:
    (probed,) = directions_with(PROFILES["nb-iot"].up)
    train = probed.train()
    assert train is not None
    used_by_train = {send.lane for send in probed.back_to_back(train, [0.0, 1.0])}
    used_alone = {send.lane for send in probed.scattered(Lone(20, 64, 0.2, 4))}
    assert used_by_train == {probed.lanes[0]}
    assert len(used_alone) == 4
    assert not used_by_train & used_alone


def test_streams_of_probes_are_distinct() -> None:
    directions = directions_with(Shape(rate_bps=1e6), Shape(rate_bps=2e6))
    sends = [
        send
        for probed in directions
        for purpose in (Purpose.DELAY, Purpose.LOSS)
        for send in probed.scattered(Lone(3, 64, 0.1, 1), purpose)
    ]
    assert len({(send.stream, send.index) for send in sends}) == len(sends) == 12


class Silence(Exchange):
    """Links that carry nothing."""

    def __init__(self) -> None:
        pass

    def probe(self, sends: object, settle_s: float) -> dict[int, list[Arrival]]:
        return {}


def test_a_dead_link_is_not_as_asked() -> None:
    (found,) = quick(Silence(), directions_with(Shape(rate_bps=1e6, delay_s=0.01)))
    assert not found.ok
    assert found.achieved.rate_bps is None
    assert len(found.reasons) == 2


def test_one_busy_moment_does_not_spoil_the_rate_of_a_fast_link() -> None:
    (probed,) = directions_with(Shape(rate_bps=1e8))
    train = probed.train()
    assert train is not None
    sends = probed.back_to_back(train, [0.0, 0.1, 0.2])
    on_link_ns = train.size * 8 * 10

    def came_ns(send: Send, spoilt: int) -> int:
        number, index = divmod(send.index, 1 << 16)
        stretched = on_link_ns * (3 if number == spoilt else 1)
        return round(send.at_s * 1e9) + index * stretched

    for spoilt in range(3):
        arrivals = [Arrival(s.index, s.size, 0, came_ns(s, spoilt)) for s in sends]
        assert probed.train_rate_bps(arrivals) == pytest.approx(1e8, rel=1e-3)
