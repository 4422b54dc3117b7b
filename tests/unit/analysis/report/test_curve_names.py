"""The name of each curve is beside that curve."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from analysis.report.charts import APART, label_spots, wide

WIDE = 20


def curve(level: str, delays: list[float], expected: int | None = None) -> list[dict]:
    many = expected or len(delays)
    return [
        {"level": level, "delay_s": delay, "share": place / many}
        for place, delay in enumerate(sorted(delays), start=1)
    ]


delays = st.lists(st.floats(0.001, 100), min_size=1, max_size=30)


@given(st.dictionaries(st.sampled_from("54321"), delays, min_size=1))
def test_each_curve_is_named_once_on_itself_and_names_are_apart(curves):
    rows = [row for level, values in curves.items() for row in curve(level, values)]
    spots = label_spots(rows, WIDE)
    assert [spot["text"] for spot in spots] == [f"level {n}" for n in sorted(curves, reverse=True)]
    for spot in spots:
        values = curves[spot["text"].removeprefix("level ")]
        came = sum(value <= spot["delay_s"] for value in values) / len(values)
        before = sum(value < spot["delay_s"] for value in values) / len(values)
        assert before <= spot["share"] <= came
    for one, other in combinations(spots, 2):
        assert abs(one["share"] - other["share"]) >= APART


def test_a_name_is_written_where_no_other_curve_is_on_its_right():
    together = [0.1 + 0.001 * number for number in range(50)]
    rows = curve("5", together + [5.0] * 50) + curve("1", together + [60.0] * 50)
    first, second = label_spots(rows, WIDE)
    assert (first["delay_s"], first["share"] > 0.5) == (5.0, True)  # the next is at 60 s
    assert second["text"] == "level 1"


def test_a_curve_that_ends_low_is_named_below_its_end():
    (spot,) = label_spots(curve("5", [0.1, 0.2], expected=100), WIDE)
    assert spot["share"] == 0.02


def test_an_axis_is_logarithmic_only_for_delays_that_differ_much():
    assert wide([0.1, 3.0], WIDE)
    assert not wide([0.1, 1.9, 0.0], WIDE)
    assert not wide([], WIDE)
