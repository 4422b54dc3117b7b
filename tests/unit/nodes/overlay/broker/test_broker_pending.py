"""Pending acknowledgements of custody: which are missing, which are sent, and what is retransmitted when."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.broker.pending import (
    MAX_CLOSED,
    OVERHEAD,
    RESEND_S,
    PendingAck,
    PendingAcks,
    copy_of,
)
from nodes.overlay.reliability.custody import acknowledgement
from nodes.protocol.wire import CUSTODY, Kind, Message

ME = 1
KEEP_S = 600.0


def publication(number: int = 7, routing: bytes = b"", payload: bytes = b"") -> Message:
    return Message(
        Kind.PUBLISH, flags=CUSTODY, message_id=number, routing=routing, payload=payload, topic="a"
    )


def nothing_held(_: int) -> bool:
    return False


def opened(
    acks: PendingAcks, peer: str | None = "b2", message: Message | None = None
) -> PendingAck:
    pending = acks.open(peer, message or publication(), 0.0)
    assert pending is not None
    return pending


def test_a_copy_that_is_not_forwarded_is_acknowledged_at_once() -> None:
    acks = PendingAcks(ME, KEEP_S)
    opened(acks)
    assert acks.close(nothing_held) == [("b2", acknowledgement(ME, publication()))]
    assert len(acks) == 0
    assert acks.is_closed(copy_of("b2", publication()))
    assert acks.close(nothing_held) == []


def test_a_copy_is_acknowledged_when_all_its_receivers_have_acknowledged() -> None:
    acks = PendingAcks(ME, KEEP_S)
    pending = opened(acks)
    onward = {"b3": publication(routing=b"x"), "c1": publication()}
    for peer, message in onward.items():
        acks.sent(pending, peer, message, 0.0)
    assert acks.close(nothing_held) == []
    acks.on_ack(copy_of("b3", onward["b3"]))
    assert acks.close(nothing_held) == []
    acks.on_ack(copy_of("c1", publication(routing=b"x")))  # acknowledges another copy
    assert acks.close(nothing_held) == []
    acks.on_ack(copy_of("c1", onward["c1"]))
    assert acks.close(nothing_held) == [("b2", acknowledgement(ME, publication()))]


def test_two_brokers_that_send_each_other_the_same_publication_do_not_wait_for_each_other() -> None:
    acks = PendingAcks(ME, KEEP_S)
    first = opened(acks, "s1")
    acks.sent(first, "b2", publication(routing=b"to b2"), 0.0)
    back = opened(acks, "b2", publication(routing=b"back"))
    assert acks.close(nothing_held) == [("b2", acknowledgement(ME, publication(routing=b"back")))]
    assert not back.waiting
    assert len(acks) == 1


def test_find_for_client_returns_the_clients_own_publication_or_one_without_a_client() -> None:
    acks = PendingAcks(ME, KEEP_S)
    opened(acks, "b2", publication(routing=b"back"))
    assert acks.find(7) is not None
    assert acks.find_for_client(7, "s1") is None
    of_no_client = opened(acks, None)
    assert acks.find_for_client(7, "s1") is of_no_client
    onward = publication(routing=b"to b2")
    assert not acks.awaits(copy_of("b2", onward))
    acks.sent(of_no_client, "b2", onward, 0.0)
    assert acks.awaits(copy_of("b2", onward))
    of_client = opened(acks, "s1")
    assert acks.find_for_client(7, "s1") is of_client
    assert acks.find_for_client(7, "s2") is of_no_client


def test_held_publications_are_not_acknowledged() -> None:
    acks = PendingAcks(ME, KEEP_S)
    pending = opened(acks)
    held = {pending.message_id}
    assert acks.close(held.__contains__) == []
    held.clear()
    assert len(acks.close(held.__contains__)) == 1
    pending = opened(acks)
    acks.hold(pending, 10.0)
    assert acks.close(nothing_held) == []
    acks.due(9.0)
    assert acks.close(nothing_held) == []
    assert acks.next_deadline() == 10.0
    acks.due(10.0)
    assert len(acks.close(nothing_held)) == 1


def test_copies_sent_before_a_link_broke_are_sent_again_once() -> None:
    acks = PendingAcks(ME, KEEP_S)
    pending = opened(acks)
    before, meanwhile = publication(routing=b"x"), publication(routing=b"y")
    acks.sent(pending, "b3", before, 0.0)
    acks.on_link_broken("b3")
    acks.sent(pending, "b3", meanwhile, 1.0)  # waits for the new link anyway
    assert acks.on_link_up("b4", 2.0) == []
    assert acks.on_link_up("b3", 2.0) == [before]
    assert acks.on_link_up("b3", 3.0) == []


def test_a_lost_peer_is_neither_waited_for_nor_acknowledged() -> None:
    acks = PendingAcks(ME, KEEP_S)
    from_lost, to_lost = opened(acks, "b3"), opened(acks, "b2")
    message = publication(routing=b"x")
    acks.sent(from_lost, "c1", publication(), 0.0)
    acks.sent(to_lost, "b3", message, 0.0)
    assert acks.forget_peer("b3") == [(to_lost, message)]
    assert acks.close(nothing_held) == [("b2", acknowledgement(ME, publication()))]
    assert len(acks) == 1
    acks.on_ack(copy_of("c1", publication()))
    assert acks.close(nothing_held) == []
    assert len(acks) == 0


def test_an_unacknowledged_copy_is_sent_again_with_growing_pauses_and_then_given_up() -> None:
    acks = PendingAcks(ME, KEEP_S)
    pending = opened(acks)
    message = publication(routing=b"x")
    acks.sent(pending, "b3", message, 0.0)
    moments, now = [], 0.0
    while (deadline := acks.next_deadline()) is not None:
        assert deadline > now
        now = deadline
        due = acks.due(now)
        moments += [now] * len(due.resend)
        if due.given_up:
            break
    assert moments == [RESEND_S, 3 * RESEND_S, 7 * RESEND_S]
    assert (now, due.given_up) == (KEEP_S, (pending.message_id,))
    assert acks.close(nothing_held) == [], "the broker that forwarded it keeps it"
    assert len(acks) == 0


def test_a_full_table_opens_no_acknowledgement_until_another_is_closed() -> None:
    acks = PendingAcks(ME, KEEP_S, max_bytes=2 * OVERHEAD + 10)
    first = opened(acks, "b2", publication(1, payload=b"12345"))
    acks.sent(first, "b3", publication(1, b"x"), 0.0)
    assert acks.open("b2", publication(2, payload=b"12345"), 0.0) is None
    acks.on_ack(copy_of("b3", publication(1, b"x")))
    acks.close(nothing_held)
    assert acks.bytes == 0
    assert acks.open("b2", publication(2, payload=b"12345"), 0.0) is not None


def test_a_limited_number_of_acknowledged_copies_is_remembered() -> None:
    acks = PendingAcks(ME, KEEP_S)
    for number in range(MAX_CLOSED + 1):
        opened(acks, "b2", publication(number))
        acks.close(nothing_held)
    assert not acks.is_closed(copy_of("b2", publication(0)))
    assert acks.is_closed(copy_of("b2", publication(1)))


steps = st.lists(
    st.tuples(
        st.sampled_from(["open", "pass", "taken", "lost", "cut", "up", "time"]),
        st.sampled_from(["b2", "b3", "c1"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


@given(steps)
def test_any_sequence_of_events_keeps_the_byte_count_and_ends_empty(
    operations: list[tuple[str, str, int]],
) -> None:
    acks = PendingAcks(ME, KEEP_S)
    for now, (what, peer, number) in enumerate(operations):
        message = publication(number, routing=bytes([number]))
        match what:
            case "open" if not acks.is_open(copy_of(peer, message)):
                acks.open(peer, message, now)
            case "pass" if (pending := acks.find(number)) is not None:
                acks.sent(pending, peer, message, now)
            case "taken":
                acks.on_ack(copy_of(peer, message))
            case "lost":
                acks.forget_peer(peer)
            case "cut":
                acks.on_link_broken(peer)
            case "up":
                acks.on_link_up(peer, now)
            case "time":
                acks.due(now)
        acks.close(nothing_held)
        assert acks.bytes >= len(acks) * OVERHEAD
    acks.due(len(operations) + KEEP_S)
    assert len(acks) == 0
    assert acks.bytes == 0
    assert acks.next_deadline() is None


def test_a_held_acknowledgement_is_not_found_before_its_release() -> None:
    acks = PendingAcks(ME, KEEP_S)
    waits = opened(acks, "s1")
    acks.hold(waits, inf)
    assert acks.find(waits.message_id) is None
    begun = opened(acks, "b2")
    assert acks.find(waits.message_id) is begun
    acks.release(waits)
    assert acks.find(waits.message_id) is waits
