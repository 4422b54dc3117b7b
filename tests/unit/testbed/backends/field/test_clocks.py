"""The bound on a clock's offset holds also on asymmetric paths."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.field.clocks import compared

times = st.integers(0, 10**9)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(times, times, times), min_size=1, max_size=10),
)
def test_the_true_offset_is_within_the_error(offset: int, ways: list[tuple[int, int, int]]) -> None:
    now, asked = 10**18, []
    for there, back, pause in ways:
        asked.append((now, now + there + offset, now + there + back))
        now += there + back + pause
    reading = compared("siren", "during", asked)
    assert abs(reading.offset_ns - offset) <= reading.error_ns + 1
    assert reading.error_ns <= (min(there + back for there, back, _ in ways) + 1) // 2
