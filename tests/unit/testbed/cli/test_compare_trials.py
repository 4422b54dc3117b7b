"""Several runs against several: how sure a difference is, and an exit code for what is surely worse than asked."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.stats.effects import METRICS, effects, judge_worse
from support.runs.star_runs import Host, manifest_of
from testbed.cli.app import app
from testbed.cli.commands.compare import read_worse
from testbed.errors import InputError

LOST = float("nan")
OBSERVED_S = 31.0


def write_run(folder: Path, delays: list[float], seed: int) -> Path:
    """An analysed run in which a siren should have got alerts; those without a delay were lost."""
    (folder / "metrics").mkdir(parents=True)
    members = [(Host("a", 1, "10.77.0.1"), "broker", ()), (Host("s", 2, "10.77.0.2"), "sensor", ())]
    manifest = manifest_of(members, folder.name)
    manifest["topology"]["seed"] = seed
    (folder / "run.json").write_text(json.dumps(manifest))
    came = [delay for delay in delays if not math.isnan(delay)]
    quantiles = np.percentile(came, (50, 95, 99, 100)).tolist()  # as earlier versions did
    counts = {"expected": len(delays), "delivered": len(came), "lost": len(delays) - len(came)}
    summary = {
        "messages": {
            "published": len(delays),
            "expected_deliveries": len(delays),
            "delivered": counts["delivered"],
            "lost": counts["lost"],
            "handed_twice": 0,
        },
        "delay_s": {"5": dict(zip(("p50", "p95", "p99", "max"), quantiles, strict=True))},
        "hops": {"5": {"mean": 2.0, "max": 2}},
        "overhead": {"payload_bytes": 1000, "wire_bytes": 2000 + 100 * seed},
        "by_priority": {"5": counts},
        "overlay": {"copies_per_publication": 1.0, "control": {"bytes_per_s_per_broker": 40.0}},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    table = {
        "priority": pa.array([5] * len(delays), pa.int32()),
        "delay_s": pa.array(
            [None if math.isnan(delay) else delay for delay in delays], pa.float64()
        ),
        "observed_s": pa.array([OBSERVED_S] * len(delays), pa.float64()),
    }
    pq.write_table(pa.table(table), folder / "metrics" / "deliveries.parquet")
    return folder


def side(folder: Path, name: str, times: float, trials: int = 5, lost: int = 0) -> str:
    """So many trials whose delays are about so many seconds; with commas between them."""
    rng = np.random.default_rng(7)
    runs = []
    for number in range(trials):
        delays = [LOST] * lost + (times * rng.normal(1.0, 0.05, 40 - lost)).tolist()
        runs.append(str(write_run(folder / f"{name}-{number}", delays, number)))
    return ",".join(runs)


def single(folder: Path, name: str, times: float, lost: int = 0) -> str:
    """A run of a scenario of its own."""
    delays = [LOST] * lost + (times * np.random.default_rng(7).normal(1, 0.05, 40 - lost)).tolist()
    return str(write_run(folder / name, delays, seed=ord(name)))


def compare(*arguments: object) -> tuple[int, Any]:
    done = CliRunner().invoke(app, ["compare", *map(str, arguments), "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_trials_are_one_side_with_all_their_messages(tmp_path: Path) -> None:
    code, document = compare(side(tmp_path, "a", 1.0), side(tmp_path, "b", 1.5, trials=3, lost=4))
    assert code == 0
    first, other = document["runs"]
    assert (first["trials"], other["trials"]) == (5, 3)
    assert first["run"] == "a-0,a-1,a-2,a-3,a-4"
    assert (other["expected"], other["lost"], other["delivered"]) == (120, 12, 108)
    assert other["levels"]["5"]["hops_mean"] == 2.0
    assert first["overhead"] == pytest.approx(2.2), "a mean over trials"
    assert document["ratios"][0]["levels"]["5"]["p50"] == pytest.approx(1.5, rel=0.05)
    assert "several runs" in document["pairs"][0]["reason"]
    (effect,) = document["effects"]
    assert (effect["trials"], effect["drawn"]) == ([5, 3], ["trials", "trials"])
    level = effect["levels"]["5"]
    assert level["p50"]["low"] < level["p50"]["value"] < level["p50"]["high"]
    assert level["p50"]["value"] == pytest.approx(1.5, rel=0.05)
    assert level["cliffs_delta"]["value"] == pytest.approx(1.0, abs=0.01)
    assert level["lost_share"] == pytest.approx({"value": 0.1, "low": 0.1, "high": 0.1})


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("p50=60%", 0),
        ("p50=40%", 1),
        ("delay=1000%", 1),  # a tenth is missing: p95 was not reached
        ("p99=1000%", 1),
        ("mean=1000%", 1),
        ("lost=10%", 0),
        ("lost=5%", 1),
    ],
)
def test_a_metric_worse_than_allowed_decides_the_exit_code(
    tmp_path: Path, asked: str, code: int
) -> None:
    sides = side(tmp_path, "a", 1.0), side(tmp_path, "b", 1.5, lost=4)
    found, document = compare(*sides, "--worse-than", asked)
    assert (found, document["ok"]) == (code, code == 0)
    assert document["worse"][0]["metric"] == asked.partition("=")[0]


@pytest.mark.parametrize(("asked", "code"), [("delay=60%", 0), ("p99=0.4", 1), ("mean=45%", 1)])
def test_so_it_does_where_everything_came(tmp_path: Path, asked: str, code: int) -> None:
    sides = side(tmp_path, "a", 1.0), side(tmp_path, "b", 1.5)
    assert compare(*sides, "--worse-than", asked)[0] == code


def test_what_only_the_first_reached_is_worse_and_shown_with_both_bounds(tmp_path: Path) -> None:
    first, other = single(tmp_path, "a", 0.9), single(tmp_path, "b", 4.8, lost=24)
    code, document = compare(first, other, "--worse-than", "p50=1000%", "--limit", "p50=99")
    assert code == 1
    level = document["runs"][1]["levels"]["5"]
    assert (level["p50"], level["not_within_s"]["p50"]) == (None, OBSERVED_S)
    ratio = document["ratios"][0]["levels"]["5"]
    assert ratio["p50"] is None
    assert ratio["not_reached"]["p50"] == {
        "first": {"value": pytest.approx(0.9, rel=0.05), "not_within_s": None},
        "other": {"value": None, "not_within_s": OBSERVED_S},
    }
    effect = document["effects"][0]["levels"]["5"]
    assert effect["p50"] == {
        **dict.fromkeys(("value", "low", "high")),
        "reached": [True, False],
        "surely": True,
    }
    assert effect["cliffs_delta"]["value"] == 1.0
    for verdict in (*document["worse"], *document["limits"]):
        assert (verdict["found"], verdict["ok"], verdict["judged"]) == (None, False, True)
        assert "b: not within 31 s; the first: 8" in verdict["of"]
    options = ["--worse-than", "p50=1000%", "--limit", "p50=99"]
    shown = CliRunner().invoke(app, ["compare", first, other, *options], env={"COLUMNS": "220"})
    for text in ("not within 31 s", "p50 is worse: p50 of level 5 in b: not within 31 s"):
        assert text in shown.output
    assert "earlier version" in shown.output


def test_what_only_the_other_reached_is_better(tmp_path: Path) -> None:
    first, other = single(tmp_path, "a", 4.8, lost=24), single(tmp_path, "b", 0.9)
    code, document = compare(first, other, "--worse-than", "delay=0", "--limit", "delay=0")
    assert (code, document["ok"]) == (0, True)
    assert document["effects"][0]["levels"]["5"]["cliffs_delta"]["value"] == -1.0


def test_what_neither_side_reached_is_not_judged(tmp_path: Path) -> None:
    first, other = (single(tmp_path, name, 1.0, lost=4) for name in "ab")
    for option in ("--worse-than", "--limit"):
        code, document = compare(first, other, option, "p95=2")
        assert code == 2
        assert "had not arrived when the runs ended" in document["error"]["message"]
        assert "p95 of level 5 in b: not within 31 s" in document["error"]["message"]
        code, document = compare(first, other, option, "delay=2")
        assert code == 0
        (verdict,) = (*document["worse"], *document["limits"])
        assert (verdict["ok"], len(verdict["not_judged"])) == (True, 1)
        shown = CliRunner().invoke(app, ["compare", first, other, option, "delay=2"])
        assert f"{option} delay does not judge p95 of level 5 in b" in " ".join(
            shown.output.split()
        )


def test_one_missing_delivery_may_be_chance(tmp_path: Path) -> None:
    first, other = single(tmp_path, "a", 1.0), single(tmp_path, "b", 1.0, lost=1)
    code, document = compare(first, other, "--worse-than", "p99=10%", "--worse-than", "mean=10%")
    assert code == 0
    for verdict in document["worse"]:
        assert (verdict["found"], verdict["ok"], verdict["reached"]) == (None, True, [True, False])


def test_a_difference_that_may_be_chance_is_not_worse(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [1.0, 1.1, 9.0, 1.0, 8.0], 1)
    other = write_run(tmp_path / "b", [1.3, 7.0, 1.2, 9.5, 1.2], 2)
    code, document = compare(first, other, "--worse-than", "p50=5%")
    (verdict,) = document["worse"]
    assert verdict["found"] > 0.05
    assert verdict["low"] < 0
    assert (code, verdict["ok"]) == (0, True)
    assert document["effects"][0]["drawn"] == ["messages", "messages"]


def test_a_run_may_belong_to_one_side_only(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", [1.0], 1)
    other = write_run(tmp_path / "b", [1.0], 1)
    code, document = compare(f"{one},{other}", other)
    assert code == 2
    assert "already named" in document["error"]["message"]


def test_people_see_the_intervals_and_the_verdict(tmp_path: Path) -> None:
    sides = side(tmp_path, "a", 1.0, trials=2), side(tmp_path, "b", 1.5, trials=2)
    shown = CliRunner().invoke(
        app, ["compare", *sides, "--worse-than", "p50=10%"], env={"COLUMNS": "220"}
    )
    assert shown.exit_code == 1
    for text in ("2 trials", "Cliff's delta", "+1.00", "worse than asked", "p50 is worse by"):
        assert text in shown.output


@pytest.mark.parametrize("text", ["p95", "p95=", "p95=-1%", "p95=much", "hops=10%", "p95=nan"])
def test_an_unreadable_bound_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_worse(text)


def test_a_bound_on_a_metric_that_no_side_has_fails() -> None:
    for name in METRICS:
        (verdict,) = judge_worse({"effects": []}, [(name, 0.1)])
        assert (verdict["found"], verdict["ok"]) == (None, False)


runs = st.lists(
    st.lists(st.floats(0.01, 10), min_size=1, max_size=8).map(lambda v: {5: np.array(v)}),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25, deadline=None)
@given(runs)
def test_a_side_beside_itself_does_not_differ(same) -> None:
    document = effects(same, same)["levels"]["5"]
    for name in ("p50", "p95", "p99", "mean"):
        assert document[name]["value"] == 1.0
        assert document[name]["low"] <= 1.0 <= document[name]["high"]
    assert document["cliffs_delta"]["value"] == 0.0
    assert document["lost_share"]["value"] == 0.0


@settings(max_examples=25, deadline=None)
@given(runs, runs)
def test_the_other_way_round_the_effect_is_the_opposite(first, other) -> None:
    there, back = effects(first, other)["levels"]["5"], effects(other, first)["levels"]["5"]
    assert there["p50"]["value"] * back["p50"]["value"] == pytest.approx(1.0)
    assert there["cliffs_delta"]["value"] == pytest.approx(-back["cliffs_delta"]["value"])
