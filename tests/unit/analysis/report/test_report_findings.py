"""The content of the report, without a browser and without Spark."""

import json
import math
import re
from itertools import combinations, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import AnalysisError
from analysis.formatting import seconds, size
from analysis.inputs.results import read_summary
from analysis.inputs.run_folder import RunNode, read_run
from analysis.report import charts
from analysis.report.sections import delay as sections_delay
from analysis.report.sections import topology_map
from analysis.report.sections.delay import delay_shares
from analysis.report.sections.headline import headline_sentence
from analysis.report.sections.topology_map import edges_of
from support.runs.star_runs import StarRun

DELAY = {"n": 9, "p50": 0.3123, "p95": 0.5, "p99": 0.5, "max": 1.2345}


def summary(expected: int, delivered: int, level: str = "5") -> dict:
    count = {"expected": expected, "delivered": delivered, "lost": expected - delivered}
    return {
        "by_priority": {level: count, "1": count} if expected else {},
        "delay_s": {level: DELAY} if delivered else {},
        "hops": {level: {"mean": 2.0, "max": 2}} if delivered else {},
    }


@pytest.mark.parametrize(
    ("metrics", "sentence", "mood"),
    [
        (
            summary(9, 9),
            "All 9 level-5 (emergency) deliveries arrived: half within 312 ms, the slowest after 1.23 s.",
            "good",
        ),
        (
            summary(1, 1, "4"),
            "The one level-4 (evacuate) delivery arrived: half within 312 ms, the slowest after 1.23 s.",
            "good",
        ),
        (
            summary(9, 7),
            "2 of 9 level-5 (emergency) deliveries had not arrived when the run ended: "
            "half arrived within 312 ms.",
            "bad",
        ),
        (
            {
                **summary(9, 4),
                "delay_s": {"5": {**DELAY, "p50": None, "not_within_s": {"p50": 31.2}}},
            },
            "5 of 9 level-5 (emergency) deliveries had not arrived when the run ended: "
            "half did not arrive within 31 s.",
            "bad",
        ),
        (summary(9, 0), "None of the 9 level-5 (emergency) deliveries arrived.", "bad"),
        (summary(0, 0), "Nothing was published on a topic with subscribers.", "none"),
    ],
)
def test_the_first_sentence_says_whether_the_alerts_got_through(metrics, sentence, mood):
    text, found = headline_sentence(metrics)
    assert (text.replace("\u00a0", " "), found) == (sentence, mood)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.4e-05, "64 µs"),
        (0.0, "0.0 ms"),
        (0.0123, "12.3 ms"),
        (0.5, "500 ms"),
        (2.0, "2.00 s"),
        (None, "–"),
    ],
)
def test_times_are_written_as_people_say_them(value, text):
    assert seconds(value).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("count", "text"), [(12, "12 B"), (1234, "1.2 kB"), (5e6, "5.0 MB"), (7e9, "7.0 GB")]
)
def test_sizes_are_written_as_people_say_them(count, text):
    assert size(count).replace("\u00a0", " ") == text


def deliveries(delays: list[float | None]) -> pa.Table:
    count = len(delays)
    return pa.table(
        {
            "priority": pa.array([5] * count, pa.int32()),
            "delay_s": pa.array(delays, pa.float64()),
            "published_ns": pa.array(range(count), pa.int64()),
            "id": [f"1-{number}" for number in range(count)],
            "topic": ["slope/<3>"] * count,
            "origin": ["sensor"] * count,
            "receiver": ["town"] * count,
            "hops": pa.array([None if delay is None else 2 for delay in delays], pa.int32()),
            "reason": ["the link was cut" if delay is None else None for delay in delays],
        }
    )


@given(st.lists(st.one_of(st.none(), st.floats(0.001, 100)), max_size=50))
def test_the_curve_of_shares_rises_to_the_share_that_arrived(delays):
    rows = sections_delay.share_rows(deliveries(delays))
    came = sorted(delay for delay in delays if delay is not None)
    assert [row["delay_s"] for row in rows] == came
    assert [row["share"] for row in rows] == sorted(row["share"] for row in rows)
    if rows:
        assert rows[-1]["share"] == len(came) / len(delays)


def test_charts_of_many_deliveries_keep_the_ends_and_the_slowest():
    delays = [float(number) for number in range(1, 10_001)]
    rows = sections_delay.share_rows(deliveries(delays))
    assert len(rows) <= sections_delay.MOST_POINTS
    assert (rows[0]["delay_s"], rows[-1]["delay_s"]) == (1.0, 10_000.0)
    came, lost = sections_delay.time_rows(deliveries(delays), 0)
    assert len(came) <= sections_delay.MOST_POINTS
    assert max(row["delay_s"] for row in came) == 10_000.0
    assert lost == []


def test_lost_deliveries_stand_apart_in_the_chart_over_time():
    came, lost = sections_delay.time_rows(deliveries([0.1, None]), 0)
    assert (len(came), len(lost)) == (1, 1)


def test_each_mark_says_without_a_script_which_delivery_it_is():
    text = str(sections_delay.times_chart(deliveries([0.1, 2.5, None]), -1_000_000_000))
    text = text.replace("\u00a0", " ")
    assert re.findall("<title>(.*?)</title>", text) == [
        "2.50 s, level 5, slope/&lt;3&gt;: sensor → town, 2 hops, published after 1.000 s, message 1-1",
        "100 ms, level 5, slope/&lt;3&gt;: sensor → town, 2 hops, published after 1.000 s, message 1-0",
        "lost, level 5, slope/&lt;3&gt;: sensor → town: the link was cut, published after 1.000 s, message 1-2",
    ]


def test_charts_are_svg_with_the_pages_colours_and_ids_of_their_own():
    rows = [
        {"level": "5", "delay_s": 0.1, "share": 0.5},
        {"level": "1", "delay_s": 30.0, "share": 1.0},
    ]
    text = str(delay_shares(rows, 'a "quoted" <label>'))
    assert text.startswith('<svg role="img" aria-label="a &quot;quoted&quot; &lt;label>"')
    assert "var(--level-5)" in text
    assert "stroke-dasharray" in text
    assert all(name.startswith("shares-") for name in re.findall(r'\bid="([^"]+)"', text))


def test_layers_keep_their_rows_without_a_copy():
    rows = [{"delay_s": 0.1}]
    chart = charts.layered(
        charts.of_rows(rows).mark_point(), charts.of_rows([]).mark_line(), title="delays"
    )
    assert chart["title"] == "delays"
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["point", "line"]
    assert chart["layer"][0]["data"]["values"] is rows


@given(st.floats(-6, 3), st.floats(1.31, 8))
def test_a_logarithmic_axis_has_every_power_of_ten_and_marks_that_do_not_touch(low, decades):
    begin, end = 10**low, 10 ** (low + decades)
    marks = charts.log_marks(begin, end)
    assert 3 <= len(marks) <= 13
    assert marks == sorted(marks)
    assert begin <= marks[0]
    assert marks[-1] <= end
    powers = [10.0**power for power in range(-7, 13)]
    assert {power for power in powers if begin <= power <= end} <= {
        float(f"{mark:.3g}") for mark in marks
    }
    apart = [math.log10(b / a) / decades * charts.HEIGHT for a, b in pairwise(marks)]
    assert min(apart) > 18  # pixels; a label is 12 high


def test_a_wide_range_of_delays_is_labelled_from_end_to_end():
    rows = [
        {"level": "5", "delay_s": delay, "share": delay / 9} for delay in (0.15, 0.4, 2.5, 8.986)
    ]
    text = str(delay_shares(rows, "label"))
    labels = [
        label for label in re.findall(r">([^<>]+)<", text) if re.fullmatch(r"[\d.]+ m?s", label)
    ]
    assert labels == ["200 ms", "500 ms", "1 s", "2 s", "5 s"]


def node(name: str, kind: str, at: tuple[float, float] | None = None) -> RunNode:
    return RunNode(name, 1, kind, "3g", 0, (), at)


def test_the_drawing_names_nodes_and_profiles_and_escapes_them():
    nodes = [node("<b>", "broker"), node("s & s", "sensor"), node("town", "subscriber")]
    text = topology_map.draw(nodes, topology_map.star(nodes))
    assert "&lt;b&gt;" in text
    assert "s &amp; s" in text
    assert "<b>" not in text
    assert text.count("<line") == 2


def test_nodes_with_coordinates_are_drawn_where_they_are_north_up():
    nodes = [
        node("north", "broker", (36.0, 138.0)),
        node("south", "sensor", (35.0, 138.0)),
        node("east", "subscriber", (35.5, 139.0)),
    ]
    places = topology_map._by_coordinates(nodes)
    assert places is not None
    assert places["north"][1] < places["east"][1] < places["south"][1]
    assert places["east"][0] > places["north"][0]
    for x, y in places.values():
        assert 0 < x < topology_map.WIDTH
        assert 0 < y < topology_map.HEIGHT


@given(
    st.lists(
        st.tuples(st.floats(35, 36), st.floats(138, 139)), min_size=2, max_size=10, unique=True
    )
)
def test_nodes_that_are_close_together_are_drawn_apart(coordinates):
    nodes = [node(f"n{number}", "sensor", at) for number, at in enumerate(coordinates)]
    places = topology_map._by_coordinates(nodes)
    if places is None:
        return
    spots = list(topology_map._apart(places).values())
    for one, other in combinations(spots, 2):
        assert math.dist(one, other) > topology_map.NEAREST / 2


@given(st.integers(0, 5), st.integers(0, 80), st.integers(0, 80))
def test_any_number_of_nodes_fits_the_drawing(brokers, sensors, towns):
    nodes = [node(f"b{n}", "broker") for n in range(brokers)]
    nodes += [node(f"s{n}", "sensor") for n in range(sensors)]
    nodes += [node(f"t{n}", "subscriber") for n in range(towns)]
    for x, y in topology_map._around_brokers(nodes).values():
        assert 0 <= x <= topology_map.WIDTH
        assert 0 <= y <= topology_map.HEIGHT
    assert topology_map.draw(nodes, topology_map.star(nodes)).startswith("<svg")


@given(st.integers(2, 30), st.integers(0, 60), st.booleans(), st.data())
def test_each_client_is_drawn_beside_its_broker(brokers, clients, placed, data):
    nodes = [
        node(f"b{n}", "broker", (35 + n / 10, 138 + n % 5 / 10) if placed else None)
        for n in range(brokers)
    ]
    nodes += [node(f"s{n}", "sensor") for n in range(clients)]
    chosen = [data.draw(st.integers(0, brokers - 1)) for _ in range(clients)]
    edges = [topology_map.Edge(f"b{broker}", f"s{n}") for n, broker in enumerate(chosen)]
    edges += [topology_map.Edge(f"b{n}", f"b{n + 1}") for n in range(brokers - 1)]
    places = topology_map._around_each_broker(nodes, edges)
    assert set(places) == {one.name for one in nodes}
    for x, y in places.values():
        assert 0 < x < topology_map.WIDTH
        assert 0 < y < topology_map.HEIGHT
    for n, broker in enumerate(chosen):
        assert (
            math.dist(places[f"s{n}"], places[f"b{broker}"]) <= 1.4 * topology_map.CLIENT_DISTANCE
        )
    assert topology_map.draw(nodes, edges).count('class="link between"') == brokers - 1


def test_edges_are_drawn_once_and_only_between_nodes_of_the_lab():
    hops = pa.table({"src": ["a", "b", "a"], "dst": ["b", "a", "unknown"]})
    assert edges_of(hops, {"a", "b"}) == [topology_map.Edge("a", "b")]


def test_a_run_that_was_not_analysed_says_what_to_do(tmp_path):
    StarRun().write(tmp_path / "run")
    with pytest.raises(AnalysisError) as error:
        read_summary(read_run(tmp_path / "run"))
    assert error.value.hint == "First: testbed analyze run"


def test_levels_that_lost_everything_have_dashes_instead_of_delays():
    rows = sections_delay.level_rows(json.loads(json.dumps(summary(3, 0))))
    assert [row["delays"] for row in rows] == [["–"] * 4] * 2
