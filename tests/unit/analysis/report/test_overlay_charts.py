"""Bar charts of brokers and nodes: readable without colour."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.report.charts import LETTER_WIDTH, LETTERS, WIDTH, with_labels
from analysis.report.sections import overlay

PARTS = ["received", "sent"]
AMOUNTS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=9)


@given(AMOUNTS)
def test_each_part_of_a_bar_is_labelled_in_its_middle_where_the_label_fits(
    amounts: list[tuple[int, int]],
) -> None:
    rows = [
        {"node": f"n{number}", "direction": direction, "messages": amount}
        for number, both in enumerate(amounts)
        for direction, amount in zip(PARTS, both, strict=True)
    ]
    longest = max(sum(both) for both in amounts)
    for row in with_labels(rows, "messages", "direction", PARTS):
        received, sent = amounts[int(row["node"][1:])]
        begin = 0 if row["direction"] == "received" else received
        assert row["middle"] == begin + (received if begin == 0 and row["place"] == 0 else sent) / 2
        pixels = row["messages"] / longest * WIDTH if longest else 0
        needed = len(row["direction"]) * LETTERS * LETTER_WIDTH
        if row["text"]:
            assert row["text"] == row["direction"]
            assert pixels > needed
        else:
            assert pixels <= 1.5 * needed


@pytest.mark.parametrize("levels", [["5"], ["5", "1"]])
def test_bars_of_hops_have_their_level_above_them(levels: list[str]) -> None:
    rows = [{"level": level, "hops": hops, "share": 0.5} for level in levels for hops in (2, 3)]
    texts = re.findall(r">([^<>]+)</text>", str(overlay.hops_chart(rows, "label")))
    for level in levels:
        assert texts.count(level) == 2 + 1  # above each bar, and in the legend
