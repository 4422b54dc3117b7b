"""Connections that have not proved yet that they know the secret, and how often a broker logs refused ones."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.runtime.broker import LOG_BURST, LogRateLimit, PendingConnections


def test_all_connections_are_admitted_while_there_is_capacity() -> None:
    pending: PendingConnections[int] = PendingConnections(capacity=3)
    assert [pending.admit(connection, "a") for connection in (1, 2, 3)] == [None, None, None]
    pending.leave(2)
    assert pending.admit(4, "a") is None


def test_an_address_with_many_connections_evicts_its_own() -> None:
    pending: PendingConnections[int] = PendingConnections(capacity=4)
    for connection, address in ((1, "honest"), (2, "crowd"), (3, "crowd"), (4, "other")):
        pending.admit(connection, address)
    assert [pending.admit(connection, "crowd") for connection in range(5, 9)] == [2, 3, 5, 6]
    assert pending.admit(9, "late but honest") == 7


Step = tuple[bool, int, str]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.sampled_from("abc"))),
    st.integers(1, 5),
)
def test_pending_connections_never_exceed_the_capacity_and_none_is_evicted_without_need(
    steps: list[Step], capacity: int
) -> None:
    pending: PendingConnections[int] = PendingConnections(capacity)
    there: dict[int, str] = {}
    for comes, connection, address in steps:
        if comes and connection not in there:
            gone = pending.admit(connection, address)
            there[connection] = address
            assert (gone is not None) == (len(there) > capacity)
            if gone is not None:
                counts = [list(there.values()).count(other) for other in there.values()]
                assert list(there.values()).count(there.pop(gone)) == max(counts)
        elif not comes:
            pending.leave(connection)
            there.pop(connection, None)
        assert len(pending) == len(there) <= capacity


def test_a_flood_is_logged_in_few_lines_that_count_every_event() -> None:
    limit = LogRateLimit()
    allowed = [limit.allow(1000 + event / 1000) for event in range(10_000)]
    logged = [suppressed for suppressed in allowed if suppressed is not None]
    assert LOG_BURST <= len(logged) <= LOG_BURST + 11
    last = limit.allow(2000)
    assert last is not None
    assert sum(logged) + len(logged) + last == 10_000


def test_single_events_are_all_logged() -> None:
    limit = LogRateLimit()
    assert [limit.allow(2.0 * event) for event in range(500)] == [0] * 500
