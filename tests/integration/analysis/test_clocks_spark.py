"""Runs on boards: the analysis corrects the boards' clocks, and reports the uncertainty that remains."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure
from analysis.report.report import charts_of, write_report
from analysis.stats.comparison import compare, side
from analysis.stats.effects import judge_worse
from analysis.stats.thresholds import judge
from support.runs.metric_tables import rows
from support.runs.shifted_clocks import SECOND, TrueClock, framed, measurements, shift
from support.runs.star_runs import MS, START_NS, Passing, Publication, StarRun
from support.runs.star_runs import publications as plain

pytestmark = pytest.mark.spark

ERROR_NS = 300_000
# Two sensors and a receiver are on boards; broker, sensor-3 and town-2 in the lab. One clock is wrong by hours.
CLOCKS = {
    "sensor-1": TrueClock(-7_200 * SECOND, 40e-6, START_NS),
    "sensor-2": TrueClock(3_000 * MS, -50e-6, START_NS),
    "town-1": TrueClock(1_500 * MS, 25e-6, START_NS),
}
MEASURED_AT = [
    (START_NS - 2 * SECOND, "before"),
    *((START_NS + at * SECOND, "during") for at in (4, 10)),
    (START_NS + 20 * SECOND, "after"),
]
PUBLICATIONS = [*plain(60, 3, every_ms=100), Publication(sensor=0, at_ms=7_000, size=4_000)]
FATES = {
    (20, "sensor-3", "broker"): "unsent",
    (31, "broker", "town-1"): "unsent",
    (33, "broker", "town-1"): "vanishes",
    (42, "sensor-1", "broker"): "twice",
}
TIMES = ("published_ns", "first_ns", "last_ns", "received_ns", "ready_ns", "sent_first_ns")
SLACK_S = 1e-8  # whole nanoseconds


def star(**options):
    return StarRun(
        sensors=3,
        publications=PUBLICATIONS,
        fate=lambda *hop: FATES.get(hop),
        decide=lambda _host, number, _payload: (
            Passing(late_ns=40 * MS) if number == 90 else Passing()
        ),
        **options,
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same run: all on one clock; on boards with measured clocks; on boards without clock measurements."""
    root = tmp_path_factory.mktemp("runs")
    usual = star()
    usual.write(root / "one-clock")
    numbers = {host.name: host.number for host, _ in usual.hosts()}
    by_number = {numbers[node]: clock for node, clock in CLOCKS.items()}
    star(as_frames=framed(usual.as_frames, by_number)).write(root / "boards")
    shift(root / "boards", CLOCKS)
    shutil.copytree(root / "boards", root / "unmeasured")
    measured = measurements(CLOCKS, MEASURED_AT, ERROR_NS)
    (root / "boards" / "clocks.jsonl").write_text(measured + '{"t_ns": 17')
    boards = {node: {"host": node} for node in CLOCKS}
    for name in ("boards", "unmeasured"):
        (root / name / "boards.json").write_text(json.dumps(boards))
    return root


@pytest.fixture(scope="module")
def found(spark, folders):
    return {
        name: measure(spark.sparkContext, read_run(folders / name))
        for name in ("one-clock", "boards", "unmeasured")
    }


def keyed(folder, name, *keys):
    known = {tuple(row[key] for key in keys): row for row in rows(folder, name)}
    assert len(known) == len(rows(folder, name))
    return known


def test_every_delivery_has_the_delay_that_it_has_on_one_clock_within_its_error(folders, found):
    true = keyed(folders / "one-clock", "deliveries", "id", "receiver")
    corrected = keyed(folders / "boards", "deliveries", "id", "receiver")
    assert true.keys() == corrected.keys()
    for key, row in corrected.items():
        same = (
            "status",
            "reason",
            "hops",
            "path",
            "duplicates",
            "confirmed",
            "out_of_order",
            "handed",
        )
        assert {name: row[name] for name in same} == {name: true[key][name] for name in same}
        if row["delay_s"] is None:
            assert row["delay_error_s"] is None
            continue
        assert abs(row["delay_s"] - true[key]["delay_s"]) <= row["delay_error_s"] + SLACK_S
        ends = {row["origin"], row["receiver"]} & CLOCKS.keys()
        assert (row["delay_error_s"] > 0) == bool(ends)
        assert row["delay_error_s"] < len(ends) * 2e-3 + SLACK_S
        assert true[key]["delay_error_s"] == 0


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        (
            "messages",
            ("link", "direction", "src", "dst", "kind", "id", "hops", "topic", "first_ns"),
        ),
        ("hops", ("id", "src", "dst", "hops")),
        ("publications", ("id",)),
    ],
)
def test_all_times_are_those_of_the_labs_machine(folders, found, table, keys):
    key = [name for name in keys if not name.endswith("_ns")]

    def ordered(name):
        return sorted(
            rows(folders / name, table),
            key=lambda row: (*(str(row[each]) for each in key), row.get("first_ns", 0)),
        )

    most = 2_000_000
    for true, row in zip(ordered("one-clock"), ordered("boards"), strict=True):
        for name, value in row.items():
            if not name.endswith("_ns") or true[name] is None:
                known = value == true[name] or isinstance(value, float)
                assert known, (name, value, true[name])
            else:
                assert abs(value - true[name]) <= most, name


def test_traffic_and_retransmissions_of_links_are_those_of_one_clock(folders, found):
    keys = ("link", "direction")
    assert keyed(folders / "boards", "links", *keys) == keyed(folders / "one-clock", "links", *keys)


def assert_close(found, true, errors):
    """Percentiles are the true ones within their errors, and those that were not reached are the same."""
    names = [name for name in ("p50", "p95", "p99", "max") if name in found]
    assert {name for name in names if found[name] is not None} == set(errors) - {"mean"}
    for name in names:
        if found[name] is None:
            assert true[name] is None
            assert abs(found["not_within_s"][name] - true["not_within_s"][name]) < 4e-3 + SLACK_S
        else:
            assert abs(found[name] - true[name]) <= errors[name] + SLACK_S


def test_the_statistics_are_those_of_one_clock_within_their_errors(found):
    one, boards = found["one-clock"], found["boards"]
    assert set(boards["delay_error_s"]) == {"5", "1"}
    for level, reported in boards["delay_error_s"].items():
        assert 0 <= reported["median"] <= reported["largest"] < 4e-3
        assert_close(boards["delay_s"][level], one["delay_s"][level], reported["of"])
    for receiver, levels in boards["by_receiver"].items():
        for level, reported in levels.items():
            true = one["by_receiver"][receiver][level]
            assert_close(reported, true, reported["error_s"])
    for key in ("messages", "hops", "overhead", "by_priority", "lost_reasons"):
        assert boards[key] == one[key]


def test_a_run_on_one_clock_says_nothing_of_clocks(folders, found):
    assert "clocks" not in found["one-clock"]
    assert "delay_error_s" not in found["one-clock"]
    write_report(folders / "one-clock")
    page = (folders / "one-clock" / "report.html").read_text()
    assert 'id="clocks"' not in page
    assert "±" not in page


def test_the_summary_describes_each_clock(found):
    clocks = found["boards"]["clocks"]
    assert clocks["damaged_lines"] == [len(CLOCKS) * len(MEASURED_AT) + 1]
    assert set(clocks["by_node"]) == set(CLOCKS)
    for node, known in clocks["by_node"].items():
        true = CLOCKS[node]
        assert known["measurements"] == len(MEASURED_AT)
        for when in ("before", "during", "after"):
            at = [(true.shown(t_ns) - t_ns) / 1e9 for t_ns, moment in MEASURED_AT if moment == when]
            assert any(
                abs(known[when]["offset_s"] - value) <= known[when]["error_s"] for value in at
            )
        assert abs(known["drift_ppm"] - true.drift * 1e6) <= known["drift_error_ppm"]
        assert 0 < known["error_s"] < 2e-3
        assert not known["was_set"]


def test_a_damaged_clock_measurement_is_a_reason_for_doubt(found):
    reasons = found["boards"]["fidelity"]["reasons"]
    assert [reason for reason in reasons if "clocks.jsonl, line 13 is damaged" in reason]
    assert not [reason for reason in reasons if "contradict" in reason]


def test_unmeasured_boards_are_named_and_impossible_times_are_called_contradictions(found):
    reasons = found["unmeasured"]["fidelity"]["reasons"]
    named = [reason for reason in reasons if "Nothing was measured of the clocks of" in reason]
    assert "sensor-1, sensor-2, town-1" in named[0]
    assert [reason for reason in reasons if "contradict the clocks" in reason]


def test_the_report_has_clocks_and_error_bars(folders, found):
    write_report(folders / "boards")
    page = (folders / "boards" / "report.html").read_text()
    assert 'id="clocks"' in page
    assert "±" in page.split('id="fidelity"')[0]
    charts = charts_of(read_run(folders / "boards"))
    assert "sensor-1" in charts["clocks-over-time"]
    assert "NaN" not in page


def test_runs_that_differ_by_their_clocks_only_are_not_called_different(folders, found):
    sides = [side(read_run(folders / name)) for name in ("one-clock", "boards")]
    document = compare(sides)
    ratios = document["ratios"][0]["levels"]
    for row in ratios.values():
        unknown = row.get("not_reached", {})
        assert [*row["within_clock_error"], *unknown] == ["p50", "p95", "p99", "max"]
    row = document["effects"][0]["levels"]["5"]
    for name in ("p50", "p95", "p99", "mean"):
        neither = row[name].get("reached") == [False, False]
        assert row[name]["within_clock_error"] != neither
    assert judge_worse(document, [("delay", 0.0)])[0]["ok"]
    assert judge(document, [("delay", 1.0)])[0]["ok"]
    pairs = document["pairs"][0]
    assert pairs["same_paths"] == pairs["pairs"] > 0
    assert all(row["within_clock_error"] > 0 for row in pairs["delays"].values())


def test_a_comparison_of_runs_on_one_clock_says_nothing_of_clocks(folders, found):
    one = side(read_run(folders / "one-clock"))
    assert "clock" not in json.dumps(compare([one, one])).replace("one-clock", "")


def test_the_declared_schema_has_the_error(folders, found):
    for name, columns in (
        ("deliveries", {"delay_error_s"}),
        ("delay", {"delay_error_s", "delay_error_max_s"}),
    ):
        schema = pq.ParquetDataset(folders / "boards" / "metrics" / f"{name}.parquet").schema
        assert columns <= set(schema.names)
