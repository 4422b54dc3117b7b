"""A link in virtual time: every lost packet is counted, no packet overtakes another, none is faster than the link."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.simulated.capture import DirectionCapture
from testbed.backends.simulated.link_layer import Flow, Kind, LinkDirection, Packet
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.links.model import LinkModel
from testbed.topology.model import Shape

MILLISECOND = SECOND // 1000

sendings = st.lists(
    st.tuples(st.integers(0, 50 * MILLISECOND), st.integers(0, 1448)), min_size=1, max_size=60
)
shapes = st.builds(
    lambda rate, delay, share, loss: Shape(rate, delay, delay * share, loss),
    rate=st.floats(8e3, 1e8),
    delay=st.floats(0, 0.5),
    share=st.floats(0, 1),
    loss=st.floats(0, 0.5),
)


class LinkChain:
    """Some links in a row, and the packets that arrive behind them."""

    def __init__(self, *chosen: Shape, queue: int = 10**9, seed: int = 1) -> None:
        self.loop = Loop()
        self.captures = [DirectionCapture(f"link-{number}", "up") for number in range(len(chosen))]
        self.links = [
            LinkDirection(self.loop, LinkModel(shape, queue, Random(f"{seed}/{number}")), capture)
            for number, (shape, capture) in enumerate(zip(chosen, self.captures, strict=True))
        ]
        self.flow = Flow("here", "there", tuple(self.links))
        self.flow.deliver = lambda packet: self.out.append((self.loop.now, packet))
        self.sent: list[tuple[int, Packet]] = []
        self.out: list[tuple[int, Packet]] = []

    def send(self, gaps_and_lengths: list[tuple[int, int]]) -> None:
        at = 0
        for gap, length in gaps_and_lengths:
            at += gap
            packet = Packet(self.flow, Kind.DATA, len(self.sent), length)
            self.sent.append((at, packet))
            self.loop.at(at, self.flow.send, packet)

    def run(self) -> None:
        self.loop.run(10**6 * SECOND)

    @property
    def dropped(self) -> int:
        return sum(link.dropped.total() for link in self.links)


@given(sendings, shapes, st.integers(0, 20_000))
def test_each_packet_comes_out_or_is_counted_as_dropped(
    sending: list[tuple[int, int]], shape: Shape, queue: int
) -> None:
    chain = LinkChain(shape, queue=queue)
    chain.send(sending)
    chain.run()
    assert len(chain.out) + chain.dropped == len(sending)
    out = sum(packet.size for _, packet in chain.out)
    assert chain.captures[0].wire_bytes == out
    assert chain.captures[0].packets == len(chain.out)


@given(sendings, shapes, shapes)
def test_no_packet_overtakes_another_over_any_links(
    sending: list[tuple[int, int]], first: Shape, second: Shape
) -> None:
    chain = LinkChain(first, second)
    chain.send(sending)
    chain.run()
    came = [packet.start for _, packet in chain.out]
    assert came == sorted(came)


@given(sendings, st.floats(8e3, 1e8), st.floats(0, 0.5))
def test_the_rate_is_never_exceeded_and_no_packet_is_faster_than_rate_and_delay(
    sending: list[tuple[int, int]], rate: float, delay: float
) -> None:
    chain = LinkChain(Shape(rate_bps=rate, delay_s=delay))
    chain.send(sending)
    chain.run()
    sent_at = {packet.start: at for at, packet in chain.sent}
    for at, packet in chain.out:
        assert at - sent_at[packet.start] >= packet.size * 8 * SECOND / rate + delay * SECOND - 1
    for (before, _), (at, packet) in pairwise(chain.out):
        assert at - before >= packet.size * 8 * SECOND / rate - 1


@given(sendings, shapes)
def test_the_same_seed_gives_the_same_moments(sending: list[tuple[int, int]], shape: Shape) -> None:
    def moments() -> list[tuple[int, int]]:
        chain = LinkChain(shape)
        chain.send(sending)
        chain.run()
        return [(at, packet.start) for at, packet in chain.out]

    assert moments() == moments()


def test_another_seed_gives_another_jitter() -> None:
    def moments(seed: int) -> list[int]:
        chain = LinkChain(Shape(delay_s=0.1, jitter_s=0.05), seed=seed)
        chain.send([(200 * MILLISECOND, 100)] * 10)
        chain.run()
        return [at for at, _ in chain.out]

    assert moments(1) == moments(1)
    assert moments(1) != moments(2)


def cut_at(moment: int) -> Callable[[LinkChain], None]:
    return lambda chain: chain.loop.at(moment, lambda _: chain.links[0].set_cut(True))


def test_a_cut_drops_packets_in_flight_and_new_ones_until_the_link_is_restored() -> None:
    chain = LinkChain(Shape(delay_s=0.1))
    chain.send([(0, 10), (50 * MILLISECOND, 11), (100 * MILLISECOND, 12), (200 * MILLISECOND, 13)])
    cut_at(120 * MILLISECOND)(chain)
    chain.loop.at(300 * MILLISECOND, lambda _: chain.links[0].set_cut(False))
    chain.run()
    assert [packet.length for _, packet in chain.out] == [10, 13]
    assert chain.links[0].dropped == {"cut": 2}
