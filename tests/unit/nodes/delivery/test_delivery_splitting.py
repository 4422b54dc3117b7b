"""How messages are divided, what comes between the pieces, and what it costs in packets."""

import pytest

from nodes.delivery import METHODS
from nodes.delivery.base import Scheduler
from support.nodes.simulated_link import SimulatedLink, drive

PACKET_PAYLOAD, MSS, FRAME = 1444, 1448, 4
SIZE = 100_000  # of a standard message of the thesis, our header included


def up(method: str, packet_payload: int = PACKET_PAYLOAD, **parameters: object) -> Scheduler:
    scheduler = METHODS[method].scheduler(parameters)
    scheduler.on_link_up(packet_payload, 0.0)
    return scheduler


def take(scheduler: Scheduler) -> bytes:
    chunk = scheduler.next_chunk(0.0)
    assert chunk is not None
    scheduler.on_progress(0, 0.0)
    return chunk.data


def take_all(scheduler: Scheduler) -> list[bytes]:
    chunks = []
    while scheduler.queued.messages:
        chunks.append(take(scheduler))
    return chunks


def formula(size: int, dv: int) -> int:
    """Packets of one message (Lee 2016, 5.3)."""
    return -(-dv // 1443) * (size // dv) + -(-(size % dv) // 1443)


@pytest.mark.parametrize(("dv", "packets"), [(1443, 70), (10_000, 70), (5_000, 80), (1_000, 100)])
def test_the_packets_of_a_divided_message_are_those_of_the_thesis(dv: int, packets: int) -> None:
    scheduler = up("dmpq-pc", dv=dv)
    scheduler.offer(bytes(SIZE), 1, 0.0)
    chunks = take_all(scheduler)
    assert sum(-(-(len(data) + FRAME) // MSS) for data in chunks) == packets == formula(SIZE, dv)
    assert len(chunks) == -(-SIZE // dv)
    assert sum(len(data) - 1 for data in chunks) == SIZE


@pytest.mark.parametrize(
    ("packet_payload", "label", "dv"), [(1444, "byte", 1443), (1440, "opcode", 1440)]
)
def test_dv_from_the_link_fills_one_packet(packet_payload: int, label: str, dv: int) -> None:
    scheduler = up("dmpq-pc", packet_payload, label=label)
    scheduler.offer(bytes(2 * dv + 1), 1, 0.0)
    assert [len(data) for data in take_all(scheduler)][:2] == [packet_payload, packet_payload]
    scheduler.offer(bytes(dv), 1, 0.0)
    assert len(take_all(scheduler)) == 1, "as long as dv is not divided"


def test_a_standard_message_is_finished_before_another_begins_but_urgent_ones_come_between() -> (
    None
):
    scheduler = up("dmpq-pc", dv=2)
    scheduler.offer(b"1111", 1, 0.0)
    assert take(scheduler) == b"C11"
    scheduler.offer(b"33", 3, 0.0)
    scheduler.offer(b"44", 4, 0.0)
    assert take_all(scheduler) == [b"A44", b"D11", b"B33"]


def test_a_long_urgent_message_is_divided_and_only_short_more_urgent_ones_come_between() -> None:
    scheduler = up("dmpq-pc", dv=2)
    scheduler.offer(b"1111", 1, 0.0)
    assert take(scheduler) == b"C11"
    scheduler.offer(b"444444", 4, 0.0)
    assert take(scheduler) == b"c44"
    scheduler.offer(b"55", 5, 0.0)
    scheduler.offer(b"5555", 5, 0.0)
    scheduler.offer(b"5", 5, 0.0)
    expected = [b"A55", b"c44", b"d44", b"c55", b"d55", b"A5", b"D11"]
    assert take_all(scheduler) == expected


@pytest.mark.parametrize("method", ["pq-pc", "dmpq-pc", "preemptive"])
def test_control_messages_go_before_everything(method: str) -> None:
    scheduler = up(method)
    scheduler.offer(b"emergency", 5, 0.0)
    scheduler.offer(b"subscribe", 1, 0.0, control=True)
    assert [data[-9:] for data in take_all(scheduler)] == [b"subscribe", b"emergency"]


def test_five_classes_or_the_two_of_the_thesis() -> None:
    offers = [(b"1", 1), (b"2", 2), (b"4", 4), (b"5", 5), (b"3", 3)]
    five, two = up("pq-pc"), up("pq-pc", urgent_from=4)
    for data, level in offers:
        five.offer(data, level, 0.0)
        two.offer(data, level, 0.0)
    assert take_all(five) == [b"5", b"4", b"3", b"2", b"1"]
    assert take_all(two) == [b"4", b"5", b"1", b"2", b"3"]


def test_every_level_interrupts_every_lower_one() -> None:
    scheduler = up("preemptive", dv=1, share_every=0)
    taken = []
    for level in range(1, 6):
        scheduler.offer(bytes([level]) * 3, level, 0.0)
        taken.append(take(scheduler))
    taken += take_all(scheduler)
    assert [data[1] for data in taken] == [1, 2, 3, 4, 5, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("rate", "least", "most"),
    [
        (1_000, 256, 256),  # the shortest pieces
        (7_000, 600, 650),
        (12_000, 1_050, 1_150),
        (20_000, 1_430, 1_443),  # one packet, although more would be in time ...
        (200_000, 1_430, 1_443),
        (500_000, 3 * MSS - 5, 3 * MSS - 5),  # ... unless they take a tenth of it
        (5_000_000, 30 * MSS - 5, 34 * MSS - 5),
    ],
)
def test_a_piece_takes_at_most_its_time_and_fills_packets_where_it_can(
    rate: int, least: int, most: int
) -> None:
    scheduler = METHODS["preemptive"].scheduler({"limit_bytes": 10**9})
    until = max(3.0, 40_000 / rate)
    enough = int(rate * until / 500_000) + 2
    run = drive(scheduler, SimulatedLink(rate), until, offers=[(0.0, bytes(500_000), 1)] * enough)
    lengths = [size - 1 for at, size in run.chunks if at > until / 2]
    usual = sorted(lengths)[len(lengths) // 2]
    assert least <= usual <= most


def test_an_emergency_is_not_cut_finer_than_packets() -> None:
    scheduler = METHODS["preemptive"].scheduler({})
    offers = [(0.0, bytes(9_000), 1), (8.0, bytes(1_400), 5)]
    run = drive(scheduler, SimulatedLink(1_000), 15.0, offers=offers)
    assert 1_401 in [size for _, size in run.chunks]


def test_pieces_shorter_than_a_packet_are_equal() -> None:
    scheduler = up("preemptive")
    scheduler.offer(bytes(1_500), 1, 0.0)
    assert [len(data) for data in take_all(scheduler)] == [751, 751]


def test_small_messages_that_wait_leave_together_but_emergencies_alone() -> None:
    scheduler = up("preemptive")
    for level in (5, 5, 2, 2, 2):
        scheduler.offer(bytes(100), level, 0.0)
    assert [len(data) for data in take_all(scheduler)] == [101, 101, 1 + 3 * 102]
    for _ in range(20):
        scheduler.offer(bytes(100), 2, 0.0)
    lengths = [len(data) for data in take_all(scheduler)]
    assert lengths == [1 + 14 * 102, 1 + 6 * 102]
    assert max(lengths) <= PACKET_PAYLOAD


def test_an_interrupted_message_begins_anew_on_the_next_connection() -> None:
    for method, whole in (("dmpq-pc", b"C1234"), ("preemptive", b"\x891234")):
        scheduler = up(method, dv=4)
        scheduler.offer(b"123456", 1, 0.0)
        assert take(scheduler) == whole
        scheduler.on_link_lost(0.0)
        assert scheduler.next_chunk(0.0) is None, "there is no link"
        scheduler.on_link_up(PACKET_PAYLOAD, 0.0)
        assert take(scheduler) == whole
