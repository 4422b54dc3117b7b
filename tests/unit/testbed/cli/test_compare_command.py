"""Runs side by side: ratios, the same messages, and limits with an exit code."""

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.stats.comparison import pairs_of
from analysis.stats.thresholds import KINDS, judge
from support.runs.star_runs import START_NS, Host, manifest_of
from testbed.cli.app import app
from testbed.cli.commands.compare import read_limit
from testbed.errors import InputError

Row = tuple[str, str, int, list[str], float]  # id, receiver, priority, path, delay

SLOW_PATH = ["slope", "a", "b", "town"]
FAST_PATH = ["slope", "a", "town"]
PUBLISHED_NS = START_NS + 2_000_000_000
ROWS: list[Row] = [
    ("1", "town", 5, SLOW_PATH, 0.2),
    ("2", "town", 5, SLOW_PATH, 0.4),
    ("3", "town", 1, SLOW_PATH, 1.0),
]


def table(rows: list[Row]) -> pa.Table:
    columns = [*zip(*rows, strict=True)] or [[]] * 5
    return pa.table(
        {
            "id": pa.array(columns[0], pa.string()),
            "receiver": pa.array(columns[1], pa.string()),
            "topic": pa.array(["alert"] * len(rows), pa.string()),
            "priority": pa.array(columns[2], pa.int32()),
            "payload_bytes": pa.array([200] * len(rows), pa.int64()),
            "published_ns": pa.array([PUBLISHED_NS] * len(rows), pa.int64()),
            "hops": pa.array([len(path) - 1 for path in columns[3]], pa.int32()),
            "path": pa.array([[*path] for path in columns[3]], pa.list_(pa.string())),
            "delay_s": pa.array(columns[4], pa.float64()),
            "status": pa.array(["delivered"] * len(rows), pa.string()),
        }
    )


def summary(rows: list[Row], lost: int = 0) -> dict[str, Any]:
    levels = sorted({row[2] for row in rows}, reverse=True)
    of = {level: [row for row in rows if row[2] == level] for level in levels}
    return {
        "messages": {
            "published": 3,
            "expected_deliveries": len(rows) + lost,
            "delivered": len(rows),
            "lost": lost,
            "duplicates": 0,
            "handed_twice": 0,
        },
        "delay_s": {
            str(level): {
                "n": len(mine),
                **{name: max(row[4] for row in mine) for name in ("p50", "p95", "p99", "max")},
            }
            for level, mine in of.items()
        },
        "hops": {
            str(level): {
                "mean": sum(len(row[3]) - 1 for row in mine) / len(mine),
                "max": max(len(row[3]) - 1 for row in mine),
            }
            for level, mine in of.items()
        },
        "overhead": {"payload_bytes": 1000, "wire_bytes": 2000 + 500 * lost},
        "by_priority": {
            str(level): {
                "expected": len(mine) + lost * (level == levels[0]),
                "delivered": len(mine),
                "lost": lost * (level == levels[0]),
            }
            for level, mine in of.items()
        },
        "overlay": {
            "copies_per_publication": sum(len(row[3]) - 1 for row in rows) / 3,
            "control": {"bytes_per_s_per_broker": 40.0},
        },
        "fidelity": {"ok": True, "reasons": [], "machine": None},
    }


def write_run(folder: Path, rows: list[Row], lost: int = 0, **topology: Any) -> Path:
    """An analysed run with these deliveries."""
    (folder / "metrics").mkdir(parents=True)
    members = [
        (Host("a", 1, "10.77.0.1"), "broker", ()),
        (Host("slope", 2, "10.77.0.2"), "sensor", ()),
        (Host("town", 3, "10.77.0.3"), "subscriber", ("alert",)),
    ]
    manifest = manifest_of(members, folder.name, "sg-tbps")
    manifest["topology"] |= topology
    (folder / "run.json").write_text(json.dumps(manifest))
    (folder / "summary.json").write_text(json.dumps(summary(rows, lost)))
    pq.write_table(table(rows), folder / "metrics" / "deliveries.parquet")
    return folder


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write_run(tmp_path / "first", ROWS)


def compare(*arguments: object) -> tuple[int, Any]:
    done = CliRunner().invoke(app, ["compare", *map(str, arguments), "--json"])
    return done.exit_code, json.loads(done.stdout)


def slower(times: float, path: list[str] = SLOW_PATH) -> list[Row]:
    return [(*row[:3], path, row[4] * times) for row in ROWS]


def test_a_run_is_shown_as_multiples_of_the_first(first: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", slower(1.5, FAST_PATH)[:2], lost=1)
    code, document = compare(first, other)
    assert code == 0
    assert [run["run"] for run in document["runs"]] == ["first", "other"]
    assert (document["runs"][1]["delivered"], document["runs"][1]["lost"]) == (2, 1)
    ratio = document["ratios"][0]
    assert ratio["levels"]["5"]["p95"] == pytest.approx(1.5)
    assert ratio["levels"]["5"]["hops_mean"] == pytest.approx(2 / 3)
    assert "1" not in ratio["levels"]
    assert ratio["overhead"] == pytest.approx(2.5 / 2)
    assert ratio["control_bytes_per_s"] == 1.0
    assert (document["limits"], document["ok"]) == ([], True)


def test_the_head_of_a_column_is_what_distinguishes_the_run(first: Path, tmp_path: Path) -> None:
    rate, count = "links.profiles.3g.up.rate", "groups.[x].count"
    other = write_run(
        tmp_path / "other",
        ROWS,
        delivery={"method": "preemptive", "parameters": []},
        overrides=[[rate, "64kbit/s"], [count, "3"]],
        seed=2,
    )
    arguments = ["compare", str(first), str(other)]
    text = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"}).output
    head = text[: text.index("delivered")]
    for own in ("delivery fifo", "delivery preemptive", "rate as in the file", "rate 64kbit/s"):
        assert own in head
    assert "seed 2" in head
    assert "sg-tbps" not in head
    same = "the same in all: overlay sg-tbps, backend netns, emulator relay"
    assert same in " ".join(text.split())
    _, document = compare(first, other)
    assert [run["settings"] for run in document["runs"]] == [
        {"delivery": "fifo", rate: "as in the file", count: "as in the file", "seed": "1"},
        {"delivery": "preemptive", rate: "64kbit/s", count: "3", "seed": "2"},
    ]
    assert document["same"]["overlay"] == "sg-tbps"


def test_the_same_messages_are_compared_one_by_one(first: Path, tmp_path: Path) -> None:
    rows = [ROWS[0], (*ROWS[1][:3], FAST_PATH, 0.8), ("9", "town", 5, SLOW_PATH, 0.1)]
    _, document = compare(first, write_run(tmp_path / "other", rows))
    assert document["pairs"] == [
        {
            "run": "other",
            "pairs": 2,
            "only_first": 1,
            "only_this": 1,
            "other_messages": 0,
            "same_hops": 1,
            "same_paths": 1,
            "delays": {
                "5": {
                    "pairs": 2,
                    "p05": pytest.approx(1.05),
                    "p50": pytest.approx(1.5),
                    "p95": pytest.approx(1.95),
                }
            },
        }
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("12345"),
            st.sampled_from(["town", "east"]),
            st.integers(1, 5),
            st.sampled_from([SLOW_PATH, FAST_PATH]),
            st.floats(0.01, 9),
        ),
        unique_by=lambda row: row[:2],
    )
)
def test_a_run_beside_itself_is_the_same_in_everything(rows: list[Row]) -> None:
    joined = table(rows).drop_columns("status")
    paths = pa.array([">".join(row[3]) for row in rows], pa.string())
    joined = joined.set_column(joined.schema.get_field_index("path"), "path", paths)
    joined = joined.rename_columns({"published_ns": "at_ns"})
    document = pairs_of(joined, joined)
    assert document["pairs"] == document["same_hops"] == document["same_paths"] == len(rows)
    assert (document["only_first"], document["only_this"], document["other_messages"]) == (0, 0, 0)
    assert sum(delay["pairs"] for delay in document["delays"].values()) == len(rows)
    assert all(delay["p05"] == delay["p95"] == 1.0 for delay in document["delays"].values())


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("delay=1.5", 0),
        ("delay=1.49", 1),
        ("max=1.6", 0),
        ("hops=1.0", 0),
        ("hops=0.6", 1),
        ("copies=0.67", 0),
        ("control=1", 0),
        ("control=0.9", 1),
        ("overhead=1", 0),
        ("lost=0", 0),
        ("handed-twice=0", 0),
        ("other-hops=1", 0),
        ("other-hops=0.99", 1),
        ("other-paths=0.5", 1),
    ],
)
def test_a_limit_decides_the_exit_code(first: Path, tmp_path: Path, limit: str, code: int) -> None:
    other = write_run(tmp_path / "other", slower(1.5, FAST_PATH))
    found, document = compare(first, other, "--limit", limit)
    assert (found, document["ok"]) == (code, code == 0)
    assert document["limits"][0]["limit"] == limit.partition("=")[0]


def test_the_worst_of_several_runs_is_judged(first: Path, tmp_path: Path) -> None:
    fine = write_run(tmp_path / "fine", slower(1.1))
    slow = write_run(tmp_path / "slow", slower(3.0))
    code, document = compare(first, slow, fine, "--limit", "delay=1.2", "--limit", "hops=1")
    assert code == 1
    assert [one["ok"] for one in document["limits"]] == [False, True]
    assert document["limits"][0]["of"].endswith("in slow")


def test_runs_of_other_scenarios_are_shown_beside_each_other_but_not_message_by_message(
    first: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "other", ROWS, seed=2)
    code, document = compare(first, other)
    assert (code, document["pairs"]) == (0, [{"run": "other", "reason": "its seed is 2, not 1"}])
    scenario = {"duration_s": 10.0, "settle_s": 10.0, "publish": [{"topic": "rain"}]}
    third = write_run(tmp_path / "third", ROWS, scenario=scenario)
    assert "published" in compare(first, third)[1]["pairs"][0]["reason"]
    code, document = compare(first, other, "--limit", "other-hops=0")
    assert code == 2
    assert "its seed is 2" in document["error"]["hint"]


def test_an_id_that_means_another_publication_makes_no_pair(first: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", ROWS)
    path = other / "metrics" / "deliveries.parquet"
    document = pq.read_table(path)
    later = [PUBLISHED_NS + n * 5_000_000_000 for n in range(3)]
    column = document.schema.get_field_index("published_ns")
    pq.write_table(document.set_column(column, "published_ns", pa.array(later, pa.int64())), path)
    (pairs,) = compare(first, other)[1]["pairs"]
    assert (pairs["pairs"], pairs["other_messages"]) == (1, 2)
    assert (pairs["only_first"], pairs["only_this"]) == (0, 0)


def test_sensors_that_fail_at_other_times_make_another_scenario(
    first: Path, tmp_path: Path
) -> None:
    def scenario(*nodes: str) -> dict[str, Any]:
        crash = {"at_s": 3.0, "kind": "crash", "nodes": [*nodes], "share": 1.0}
        return {"duration_s": 10.0, "settle_s": 10.0, "publish": [], "actions": [crash]}

    broker = write_run(tmp_path / "broker", ROWS, scenario=scenario("a"))
    sensor = write_run(tmp_path / "sensor", ROWS, scenario=scenario("slope"))
    document = compare(first, broker, sensor)[1]["pairs"]
    assert document[0]["pairs"] == 3
    assert document[1]["reason"] == "its sensors fail at other times"


def test_another_number_of_sensors_is_another_scenario(first: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", ROWS)
    manifest = json.loads((other / "run.json").read_text())
    more = copy.deepcopy(manifest["topology"]["nodes"][1]) | {"name": "hill", "number": 4}
    manifest["topology"]["nodes"].append(more)
    (other / "run.json").write_text(json.dumps(manifest))
    assert "sensors" in compare(first, other)[1]["pairs"][0]["reason"]


def test_another_space_or_sensors_elsewhere_in_it_are_another_scenario(
    first: Path, tmp_path: Path
) -> None:
    def in_space(name: str, low: float, at: list[float]) -> Path:
        space = [{"name": "latitude", "low": low, "high": 34.0}]
        folder = write_run(tmp_path / name, ROWS, space=space)
        manifest = json.loads((folder / "run.json").read_text())
        for node in manifest["topology"]["nodes"]:
            node["at"] = at if node["kind"] == "sensor" else None
        (folder / "run.json").write_text(json.dumps(manifest))
        return folder

    one = in_space("one", 33.0, [33.5, 133.5])
    others = [
        first,
        in_space("wider", 32.0, [33.5, 133.5]),
        in_space("moved", 33.0, [33.6, 133.5]),
        in_space("same", 33.0, [33.5, 133.5]),
    ]
    document = compare(one, *others)[1]["pairs"]
    reason = "its areas are others, or its sensors stand elsewhere"
    assert [pair.get("reason") for pair in document] == [reason, reason, reason, None]


@pytest.mark.parametrize("arguments", [("first",), ("first", "first")])
def test_one_run_alone_is_refused(
    first: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(first.parent)
    code, document = compare(*arguments)
    assert code == 2
    assert "error" in document


@pytest.mark.parametrize("text", ["hops", "hops=", "hops=many", "hops=-1", "hops=nan", "hopps=1"])
def test_an_unreadable_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_limit(text)


def test_a_limit_on_a_quantity_that_no_run_has_fails() -> None:
    nothing = {"runs": [], "ratios": [], "pairs": []}
    for name in KINDS:
        (verdict,) = judge(nothing, [(name, 9.0)])
        assert (verdict["found"], verdict["ok"]) == (None, False)


def test_the_tables_show_ratios_and_exceeded_limits(first: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", slower(1.5, FAST_PATH))
    shown = CliRunner().invoke(
        app,
        ["compare", str(first), str(other), "--limit", "delay=1.2"],
        env={"COLUMNS": "160"},
    )
    assert shown.exit_code == 1
    same = "the same in all: delivery fifo, overlay sg-tbps, backend netns, emulator relay, seed 1"
    assert same in " ".join(shown.output.split())
    for text in ("600.0 ms  ×1.50", "2.00  ×0.67", "0.0%", "exceeded"):
        assert text in shown.output
    assert "delay is 1.5" in shown.output


def test_a_run_of_an_earlier_version_is_compared_as_far_as_it_is_known(
    first: Path, tmp_path: Path
) -> None:
    old = write_run(tmp_path / "old", ROWS)
    document = json.loads((old / "summary.json").read_text())
    del document["overlay"]
    del document["messages"]["handed_twice"]
    (old / "summary.json").write_text(json.dumps(document))
    code, document = compare(first, old)
    assert code == 0
    assert document["runs"][1]["copies_per_publication"] is None
    assert document["ratios"][0]["levels"]["5"]["p50"] == 1.0
    shown = CliRunner().invoke(app, ["compare", str(first), str(old)])
    assert "testbed analyze old" in shown.output
