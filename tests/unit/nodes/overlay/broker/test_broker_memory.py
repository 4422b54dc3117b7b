"""Publications that a broker retains for subscribers that missed them, and how its clients catch up."""

from nodes.overlay.broker.partition import UNNOTICED_S, LostPeers
from nodes.overlay.broker.recovery import CATCH_UP_S, LATER_S, LEAST_S, OVERHEAD, CatchUp, Retained
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.digest import Digest
from nodes.protocol.interests import Interest
from nodes.protocol.regions import Box
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message

A = Interest("a")


def publication(
    number: int, topic: str = "a", payload: bytes = b"", place: tuple[int, ...] = ()
) -> Message:
    return Message(
        Kind.PUBLISH,
        5,
        hops=2,
        flags=CUSTODY,
        message_id=number,
        topic=topic,
        payload=payload,
        routing=b"way",
        place=place,
    )


def ids(messages: list[Message]) -> list[int]:
    return [message.message_id for message in messages]


def test_missing_publications_are_resent_as_repetitions_without_routing_and_one_hop_older() -> None:
    retained = Retained(600)
    for number in (1, 2, 3):
        retained.add(publication(number), 0)
    retained.add(publication(4, "b"), 0)
    there = digest.decode(digest.encode([2]))
    missing = retained.missing(A, there, 1)
    assert ids(missing) == [1, 3]
    assert {message.flags for message in missing} == {CUSTODY | REPEATED}
    assert {(message.routing, message.hops) for message in missing} == {(b"", 3)}
    assert retained.ids(A, 1) == [3, 2, 1]


def test_the_memory_is_bounded_in_time() -> None:
    retained = Retained(10)
    retained.add(publication(1), 0)
    retained.add(publication(2), 5)
    retained.add(publication(1), 9)  # received again: no reason to keep it longer
    assert ids(retained.missing(A, Digest(), 9.9)) == [1, 2]
    assert ids(retained.missing(A, Digest(), 10)) == [2]
    assert ids(retained.missing(A, Digest(), 15)) == []
    assert retained.bytes == 0


def test_the_memory_is_bounded_in_bytes_and_forgets_the_oldest() -> None:
    retained = Retained(600, max_bytes=3 * (OVERHEAD + 100))
    for number in range(50):
        retained.add(publication(number, payload=bytes(100)), number)
        assert retained.bytes <= 3 * (OVERHEAD + 100)
    assert ids(retained.missing(A, Digest(), 50)) == [47, 48, 49]


def test_a_client_that_catches_up_is_sent_each_publication_once() -> None:
    retained = Retained(600)
    catch_up = CatchUp(retained)
    client_digest = digest.encode([1])
    for number in (1, 2):
        retained.add(publication(number), 0)
    catch_up.begin("c1", A, "a", client_digest, 0)
    (missing,) = catch_up.missing("c1", "a", 0)
    assert missing.message_id == 2
    catch_up.sent("c1", missing)
    assert catch_up.missing("c1", "a", 1) == []
    assert catch_up.lacking(publication(3), 1) == ["c1"]
    assert catch_up.lacking(publication(2), 1) == []
    assert catch_up.lacking(publication(1), 1) == []
    assert catch_up.clients("a", 1) == ["c1"]
    assert catch_up.clients("b", 1) == []
    assert catch_up.clients("a", CATCH_UP_S) == []


def test_a_client_that_catches_up_on_overlapping_areas_is_sent_each_event_once() -> None:
    retained = Retained(600)
    catch_up = CatchUp(retained)
    low, high = (Interest("a", Box((left,), (left + 6,))) for left in (0, 4))
    for number in range(12):
        retained.add(publication(number, place=(number,)), 0)
    retained.add(publication(99), 0)  # an event without a place
    catch_up.begin("c1", low, "a", digest.encode([1]), 0)
    first = catch_up.missing("c1", "a", 0)
    assert ids(first) == [0, 2, 3, 4, 5, 6]
    for message in first:
        catch_up.sent("c1", message)
    catch_up.begin("c1", high, "a", digest.encode([7]), 0)
    assert ids(catch_up.missing("c1", "a", 0)) == [8, 9, 10]
    assert catch_up.lacking(publication(9, place=(9,)), 1) == ["c1"]
    assert catch_up.lacking(publication(11, place=(11,)), 1) == []


def test_publishers_are_asked_several_times_but_not_for_known_publications() -> None:
    retained = Retained(600)
    catch_up = CatchUp(retained)
    retained.add(publication(1), 0)
    client_digest = digest.encode([2])
    catch_up.begin("c1", A, "a", client_digest, 0)
    moments = []
    while (moment := catch_up.next_deadline()) is not None:
        moments.append(moment)
        assert list(catch_up.due(moment)) == ["a"]
    assert moments == [0, *LATER_S]
    known = digest.decode(catch_up.digest("a", 1, 0))
    assert [number in known for number in (1, 2, 3)] == [True, True, False]
    known = digest.decode(catch_up.digest("a", 2, 0))  # another client may have missed it
    assert [number in known for number in (1, 2, 3)] == [True, False, False]
    catch_up.request("a", 5)
    catch_up.stop("a")
    assert catch_up.next_deadline() is None


def test_many_clients_that_reconnect_at_once_share_one_request() -> None:
    catch_up = CatchUp(Retained(600))
    for number in range(20):
        catch_up.begin(f"c{number}", A, "a", b"", number / 20)
        due = list(catch_up.due(number / 20))
        assert due == (["a"] if number == 0 else [])
        for channel in due:
            catch_up.requested(channel, number / 20)
    assert catch_up.next_deadline() == LEAST_S


def test_a_request_that_cannot_be_sent_yet_does_not_delay_the_next_one() -> None:
    catch_up = CatchUp(Retained(600))
    catch_up.begin("c1", A, "a", b"", 0)
    assert list(catch_up.due(0)) == ["a"]  # but its own subscription is not yet confirmed
    catch_up.request("a", 0.01)
    assert catch_up.next_deadline() == 0.01


def test_publications_of_own_clients_can_be_published_again() -> None:
    retained = Retained(600)
    retained.add(publication(1), 10, own=True)
    retained.add(publication(2), 20, own=True)
    retained.add(publication(3), 30)
    (again,) = retained.published_since(20, 40)
    assert (again.message_id, again.flags, again.routing) == (2, CUSTODY, b"")


def test_a_peer_that_is_reached_again_makes_a_broker_look_back_to_before_it_was_lost() -> None:
    lost = LostPeers()
    assert not lost.on_reached("b2", 1.0)
    assert lost.add("b2", 100.0)
    assert not lost.add("b2", 101.0)
    assert lost.add("b3", 102.0)
    assert lost.any_but({"b2"})
    assert not lost.any_but({"b2", "b3"})
    assert lost.on_reached("b3", 110.0)
    assert lost.on_reached("b2", 112.0)
    assert not lost.any_but(set())
    assert lost.next_deadline() == 112.0
    assert lost.due(111.0) is None
    assert lost.due(112.0) == 100.0 - UNNOTICED_S
    assert lost.next_deadline() is None
    lost.cut_off(200.0)
    assert lost.on_reached("b2", 210.0), "any peer counts"
    assert lost.due(210.0) == 200.0 - UNNOTICED_S
