"""The ledger of custody: who is waited for, who is answered, and what is sent again when."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.broker.duties import AGAIN_S, MAX_CLOSED, OVERHEAD, Duties, Duty, copy_of
from nodes.overlay.reliability.custody import taken
from nodes.protocol.wire import CUSTODY, Kind, Message

ME = 1
KEEP_S = 600.0


def publication(number: int = 7, routing: bytes = b"", payload: bytes = b"") -> Message:
    return Message(
        Kind.PUBLISH, flags=CUSTODY, message_id=number, routing=routing, payload=payload, topic="a"
    )


def nothing_held(_: int) -> bool:
    return False


def opened(duties: Duties, peer: str | None = "b2", message: Message | None = None) -> Duty:
    duty = duties.open(peer, message or publication(), 0.0)
    assert duty is not None
    return duty


def test_a_copy_with_no_consequence_is_answered_at_once() -> None:
    duties = Duties(ME, KEEP_S)
    opened(duties)
    assert duties.close(nothing_held) == [("b2", taken(ME, publication()))]
    assert len(duties) == 0
    assert duties.is_closed(copy_of("b2", publication()))
    assert duties.close(nothing_held) == []


def test_a_copy_is_answered_when_all_to_whom_it_went_have_answered() -> None:
    duties = Duties(ME, KEEP_S)
    duty = opened(duties)
    onward = {"b3": publication(routing=b"x"), "c1": publication()}
    for peer, message in onward.items():
        duties.passed(duty, peer, message, 0.0)
    assert duties.close(nothing_held) == []
    duties.on_taken(copy_of("b3", onward["b3"]))
    assert duties.close(nothing_held) == []
    duties.on_taken(copy_of("c1", publication(routing=b"x")))  # of another copy
    assert duties.close(nothing_held) == []
    duties.on_taken(copy_of("c1", onward["c1"]))
    assert duties.close(nothing_held) == [("b2", taken(ME, publication()))]


def test_two_brokers_that_send_each_other_the_same_publication_do_not_wait_for_each_other() -> None:
    duties = Duties(ME, KEEP_S)
    first = opened(duties, "s1")
    duties.passed(first, "b2", publication(routing=b"to b2"), 0.0)
    back = opened(duties, "b2", publication(routing=b"back"))
    assert duties.close(nothing_held) == [("b2", taken(ME, publication(routing=b"back")))]
    assert not back.waiting
    assert len(duties) == 1


def test_what_a_guest_published_is_published_again_for_the_guest_or_for_nobody() -> None:
    duties = Duties(ME, KEEP_S)
    opened(duties, "b2", publication(routing=b"back"))
    assert duties.of(7) is not None
    assert duties.of_guest(7, "s1") is None
    nobodys = opened(duties, None)
    assert duties.of_guest(7, "s1") is nobodys
    onward = publication(routing=b"to b2")
    assert not duties.awaits(copy_of("b2", onward))
    duties.passed(nobodys, "b2", onward, 0.0)
    assert duties.awaits(copy_of("b2", onward))
    guests = opened(duties, "s1")
    assert duties.of_guest(7, "s1") is guests
    assert duties.of_guest(7, "s2") is nobodys


def test_what_is_held_is_not_answered() -> None:
    duties = Duties(ME, KEEP_S)
    duty = opened(duties)
    held = {duty.message_id}
    assert duties.close(held.__contains__) == []
    held.clear()
    assert len(duties.close(held.__contains__)) == 1
    duty = opened(duties)
    duties.hold(duty, 10.0)
    assert duties.close(nothing_held) == []
    duties.due(9.0)
    assert duties.close(nothing_held) == []
    assert duties.next_deadline() == 10.0
    duties.due(10.0)
    assert len(duties.close(nothing_held)) == 1


def test_after_a_break_what_was_sent_before_it_is_sent_again_once() -> None:
    duties = Duties(ME, KEEP_S)
    duty = opened(duties)
    before, meanwhile = publication(routing=b"x"), publication(routing=b"y")
    duties.passed(duty, "b3", before, 0.0)
    duties.on_cut("b3")
    duties.passed(duty, "b3", meanwhile, 1.0)  # waits for the new link anyway
    assert duties.cut_copies("b4", 2.0) == []
    assert duties.cut_copies("b3", 2.0) == [before]
    assert duties.cut_copies("b3", 3.0) == []


def test_who_is_gone_is_neither_waited_for_nor_answered() -> None:
    duties = Duties(ME, KEEP_S)
    from_lost, to_lost = opened(duties, "b3"), opened(duties, "b2")
    message = publication(routing=b"x")
    duties.passed(from_lost, "c1", publication(), 0.0)
    duties.passed(to_lost, "b3", message, 0.0)
    assert duties.take_from("b3") == [(to_lost, message)]
    assert duties.close(nothing_held) == [("b2", taken(ME, publication()))]
    assert len(duties) == 1
    duties.on_taken(copy_of("c1", publication()))
    assert duties.close(nothing_held) == []
    assert len(duties) == 0


def test_a_copy_that_nobody_answers_is_sent_again_ever_more_rarely_and_then_given_up() -> None:
    duties = Duties(ME, KEEP_S)
    duty = opened(duties)
    message = publication(routing=b"x")
    duties.passed(duty, "b3", message, 0.0)
    moments, now = [], 0.0
    while (deadline := duties.next_deadline()) is not None:
        assert deadline > now
        now = deadline
        due = duties.due(now)
        moments += [now] * len(due.again)
        if due.given_up:
            break
    assert moments == [AGAIN_S, 3 * AGAIN_S, 7 * AGAIN_S]
    assert (now, due.given_up) == (KEEP_S, (duty.message_id,))
    assert duties.close(nothing_held) == [], "whoever passed it on keeps it"
    assert len(duties) == 0


def test_without_room_no_duty_is_taken_on_and_closing_makes_room() -> None:
    duties = Duties(ME, KEEP_S, max_bytes=2 * OVERHEAD + 10)
    first = opened(duties, "b2", publication(1, payload=b"12345"))
    duties.passed(first, "b3", publication(1, b"x"), 0.0)
    assert duties.open("b2", publication(2, payload=b"12345"), 0.0) is None
    duties.on_taken(copy_of("b3", publication(1, b"x")))
    duties.close(nothing_held)
    assert duties.bytes == 0
    assert duties.open("b2", publication(2, payload=b"12345"), 0.0) is not None


def test_only_so_many_answered_copies_are_remembered() -> None:
    duties = Duties(ME, KEEP_S)
    for number in range(MAX_CLOSED + 1):
        opened(duties, "b2", publication(number))
        duties.close(nothing_held)
    assert not duties.is_closed(copy_of("b2", publication(0)))
    assert duties.is_closed(copy_of("b2", publication(1)))


steps = st.lists(
    st.tuples(
        st.sampled_from(["open", "pass", "taken", "lost", "cut", "up", "time"]),
        st.sampled_from(["b2", "b3", "c1"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


@given(steps)
def test_whatever_happens_bytes_are_counted_and_the_end_leaves_nothing(
    story: list[tuple[str, str, int]],
) -> None:
    duties = Duties(ME, KEEP_S)
    for now, (what, peer, number) in enumerate(story):
        message = publication(number, routing=bytes([number]))
        match what:
            case "open" if not duties.is_open(copy_of(peer, message)):
                duties.open(peer, message, now)
            case "pass" if (duty := duties.of(number)) is not None:
                duties.passed(duty, peer, message, now)
            case "taken":
                duties.on_taken(copy_of(peer, message))
            case "lost":
                duties.take_from(peer)
            case "cut":
                duties.on_cut(peer)
            case "up":
                duties.cut_copies(peer, now)
            case "time":
                duties.due(now)
        duties.close(nothing_held)
        assert duties.bytes >= len(duties) * OVERHEAD
    duties.due(len(story) + KEEP_S)
    assert len(duties) == 0
    assert duties.bytes == 0
    assert duties.next_deadline() is None


def test_what_is_sent_before_a_duty_begins_does_not_end_it() -> None:
    duties = Duties(ME, KEEP_S)
    waits = opened(duties, "s1")
    duties.hold(waits, inf)
    assert duties.of(waits.message_id) is None
    begun = opened(duties, "b2")
    assert duties.of(waits.message_id) is begun
    duties.release(waits)
    assert duties.of(waits.message_id) is waits
