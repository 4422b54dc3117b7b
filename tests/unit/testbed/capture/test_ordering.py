"""Records of two sockets come into one order."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.capture.link import ReorderBuffer
from testbed.capture.records import Record


def record(time_ns: int) -> Record:
    return time_ns, 60, b""


def times(records: list[Record]) -> list[int]:
    return [time_ns for time_ns, _, _ in records]


def test_a_record_waits_one_whole_interval() -> None:
    waiting = ReorderBuffer()
    waiting.add([record(1)])
    assert waiting.release() == []
    assert times(waiting.release()) == [1]
    assert waiting.release() == []


def test_a_late_record_of_the_other_socket_finds_its_place() -> None:
    waiting = ReorderBuffer()
    waiting.add([record(1), record(5)])
    waiting.release()
    waiting.add([record(3), record(9)])
    assert times(waiting.release()) == [1, 3, 5]
    assert times(waiting.release()) == [9]


def test_a_step_of_the_clock_holds_nothing_back_for_ever() -> None:
    waiting = ReorderBuffer()
    waiting.add([record(3_600)])
    waiting.release()
    waiting.add([record(1)])
    assert times(waiting.release()) == [1, 3_600]
    assert len(waiting) == 0


Intervals = st.lists(st.lists(st.integers(0, 50)))


@given(Intervals)
def test_nothing_is_lost_or_doubled(intervals: list[list[int]]) -> None:
    waiting = ReorderBuffer()
    released: list[int] = []
    for interval in intervals:
        waiting.add([record(time_ns) for time_ns in interval])
        released += times(waiting.release())
    released += times(waiting.release_all())
    assert sorted(released) == sorted(time_ns for interval in intervals for time_ns in interval)
    assert len(waiting) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_records_that_come_within_an_interval_of_their_time_come_out_sorted(
    arrivals: list[tuple[int, bool]],
) -> None:
    """Ten units of time an interval; a record is read in the interval of its time stamp or in the next."""
    waiting = ReorderBuffer()
    released: list[int] = []
    late: list[Record] = []
    for number, (unit, is_late) in enumerate(arrivals):
        stamped = [record(10 * number + unit)]
        waiting.add(late if is_late else late + stamped)
        late = stamped if is_late else []
        released += times(waiting.release())
    waiting.add(late)
    released += times(waiting.release_all())
    assert released == sorted(released)
    assert len(released) == len(arrivals)
