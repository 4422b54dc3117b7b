"""The heat map of links: the value of a cell, and its bounded size."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.report.sections import link_utilization

SCHEMA = pa.schema(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        ("unit", pa.int64()),
        ("share", pa.float64()),
    ]
)


def table(rows: dict[tuple[str, str, int], float | None]) -> pa.Table:
    listed = [
        {"link": link, "direction": direction, "unit": unit, "share": share}
        for (link, direction, unit), share in rows.items()
    ]
    return pa.Table.from_pylist(listed, schema=SCHEMA)


used = st.dictionaries(
    st.tuples(
        st.sampled_from([f"s-{n}" for n in range(12)]),
        st.sampled_from(["up", "down"]),
        st.integers(-3, 50),
    ),
    st.one_of(st.none(), st.floats(0, 2)),
    max_size=150,
)


@given(used, st.integers(1, 9), st.integers(1, 12))
def test_a_cell_is_the_fullest_unit_of_its_column_and_the_fullest_links_stay(rows, lines, columns):
    cells, left_out, units = link_utilization.heat(table(rows), lines, columns)
    counted = {key: share for key, share in rows.items() if key[2] >= 0 and share is not None}
    peaks: dict[str, float] = {}
    for (link, direction, _), share in counted.items():
        name = f"{link} {direction}"
        peaks[name] = max(share, peaks.get(name, 0.0))
    shown = {cell["line"] for cell in cells}
    assert len(shown) == min(lines, len(peaks))
    assert left_out == len(peaks) - len(shown)
    hidden = [peak for name, peak in peaks.items() if name not in shown]
    assert max(hidden, default=0.0) <= min((peaks[name] for name in shown), default=2.0)
    for cell in cells:
        assert 0 <= cell["column"] < columns
        inside = [
            share
            for (link, direction, unit), share in counted.items()
            if f"{link} {direction}" == cell["line"] and unit // units == cell["column"]
        ]
        assert cell["share"] == max(inside)


def test_links_are_sorted_in_natural_order():
    cells, _, _ = link_utilization.heat(table({(f"s-{n}", "up", 0): 0.1 for n in (10, 2, 1)}))
    assert [cell["line"] for cell in cells] == ["s-1 up", "s-2 up", "s-10 up"]


def test_full_cells_have_a_dot_and_each_link_its_peak_in_numbers():
    rows = [
        {"line": "a up", "from_s": 0, "to_s": 1, "share": 1.04},
        {"line": "b up", "from_s": 0, "to_s": 1, "share": 0.25},
    ]
    text = str(link_utilization.draw(rows, {"a up": 1.04, "b up": 0.25}, 0.9, "label")).replace(
        "\u00a0", " "
    )
    assert ">104 %<" in text
    assert ">25 %<" in text
    assert text.count('fill="var(--paper)"') == 1
