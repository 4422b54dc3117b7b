"""Which peers a broker calls after it has lost others, and when."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.broker.partition import FIRST_S, LONGEST_S, Probes

EARLY, LATE = 0.75, 1.25  # of a pause: not all brokers call at the same moment


def calls(calling: Probes, peers: list[str], count: int) -> list[tuple[float, str | None]]:
    made = []
    for _ in range(count):
        moment = calling.next_deadline()
        assert moment is not None
        made.append((moment, calling.choose(peers, moment)))
    return made


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_lost_peers_are_called_in_turn_with_growing_pauses_without_end(
    seed: int, lost: int
) -> None:
    calling = Probes(Random(seed))
    calling.begin(now=100.0)
    peers = [f"b{number}" for number in range(lost)]
    made = calls(calling, peers, 20)
    assert [peer for _, peer in made] == [peers[turn % lost] for turn in range(20)]
    moments = [100.0, *(moment for moment, _ in made)]
    pause = FIRST_S
    for before, after in pairwise(moments):
        assert EARLY * pause <= after - before + 1e-9
        assert after - before <= LATE * pause + 1e-9
        pause = min(2 * pause, LONGEST_S)


@given(st.integers(0, 2**32))
def test_pauses_are_short_again_when_another_peer_is_lost(seed: int) -> None:
    calling = Probes(Random(seed))
    calling.begin(0.0)
    (*_, (now, _)) = calls(calling, ["b1"], 9)
    calling.begin(now)
    assert (due := calling.next_deadline()) is not None
    assert due <= now + LATE * FIRST_S
    assert not calling.is_due(now)
    assert calling.is_due(due)


def test_calls_end_when_no_peer_is_left_to_call() -> None:
    calling = Probes(Random(1))
    assert calling.next_deadline() is None
    calling.begin(0.0)
    assert calling.choose([], 2.0) is None
    assert calling.next_deadline() is None
    assert not calling.is_due(1e9)
