"""Lines of `expect:` are parsed exactly, and a mistake is shown at its position."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.expectations import QUANTITIES
from analysis.stats.expectations import RELATIONS as JUDGED_RELATIONS
from testbed.topology import TopologyErrors, load_text
from testbed.topology.model import Expectation, from_json, to_json
from testbed.topology.parse.expectations import (
    KINDS,
    RELATIONS,
    ExpectationError,
    Limit,
    parse,
    written,
)

ROOT = Path(__file__).resolve().parents[4]
GOLDEN = ROOT / "tests" / "golden" / "topology" / "expectations.txt"
VALLEY = """\
groups:
  sensors: {kind: sensor, count: 2}
  offices: {kind: subscriber, count: 2, topics: [alerts]}
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 5s
  events:
    - {at: 0s, publish: {from: "sensors[*]", topic: alerts, size: 300B, period: 1s}}
  expect:
"""
WRONG = (
    "level 5 delay p99 < 2",
    "level 6 delay p99 < 2s",
    "level 5..4 lost == 0",
    "level five lost == 0",
    "level",
    "delay < 2s",
    "delay p < 2s",
    "delay median < 2s",
    "delay p99",
    "delay p99 <",
    "delay p99 < 2s or so",
    "delay p99 = 2s",
    "delay p99 =< 2s",
    "delai p99 < 2s",
    "overhead < 4",
    "forwards < 50",
    "level 5 forwards/message < 50",
    "lost == none",
    "lost == -1",
    "lost <= 101%",
    "hops mean < 6s",
    "topic alert lost == 0",
    "topic alerts topic alerts lost == 0",
    "node sirens lost == 0",
    "node sensors lost == 0",
    "from siren lost == 0",
    "< 2s",
    "",
)


@st.composite
def lines(draw: st.DrawFn) -> Expectation:
    quantity = draw(st.sampled_from(sorted(KINDS)))
    kind = KINDS[quantity]
    share = kind.limit is Limit.COUNT and draw(st.booleans())
    if share:
        limit = draw(st.integers(0, 10_000)) / 10_000
    elif kind.limit is Limit.TIME:
        limit = draw(st.integers(0, 10_000_000)) / 1_000_000
    else:
        limit = float(draw(st.integers(0, 10**9))) / 1000
    levels = draw(
        st.none() | st.tuples(st.integers(1, 5), st.integers(1, 5)).map(sorted).map(tuple)
    )
    percentiles = st.integers(1, 9_999).map(lambda number: f"p{number / 100:g}")
    name = st.none() | st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True)
    scope = kind.scoped
    return Expectation(
        quantity=quantity,
        statistic=draw(percentiles | st.sampled_from(["mean", "min", "max"]))
        if kind.statistics
        else None,
        relation=draw(st.sampled_from(RELATIONS)),
        limit=limit,
        share=share,
        levels=levels if scope else None,
        topic=draw(name) if scope else None,
        node=draw(name) if scope else None,
        origin=draw(name) if scope else None,
    )


@given(lines())
def test_a_written_expectation_is_read_back(one: Expectation) -> None:
    line = written(one)
    assert parse(line) == replace(one, text=line)
    assert written(parse(line)) == line


@given(lines())
def test_spaces_do_not_matter_around_a_relation(one: Expectation) -> None:
    line = written(one)
    tight = line.replace(f" {one.relation} ", one.relation)
    assert parse(f"  {tight} ") == parse(line)


@given(st.text(max_size=40))
def test_any_other_text_is_refused_with_a_place_inside_it(line: str) -> None:
    with pytest.raises(ExpectationError) as caught:
        parse(line)
    error = caught.value
    assert 0 <= error.start <= len(line)
    assert error.width >= 1
    assert error.hint


@pytest.mark.parametrize(
    "line",
    [
        "level 5 delay p99 < 2s",
        "lost == 0",
        "level 5 lost == 0",
        "forwards/message < 50",
        "level 4.. delay max < 5s",
        "topic alerts lost <= 1%",
        "node siren delay p95 < 1s",
        "from sensors delivered >= 99.9%",
        "overhead ratio < 4",
        "hops mean < 6",
        "control bytes/s < 300",
        "late == 0",
        "duplicates == 0",
        "handed twice == 0",
        "out of order == 0",
        "published >= 10",
        "retransmitted packets == 0",
        "fidelity warnings == 0",
    ],
)
def test_these_lines_are_right_and_written_as_they_are(line: str) -> None:
    assert parse(line).text == line


def test_the_analysis_judges_every_quantity_and_relation() -> None:
    assert {*QUANTITIES} == {*KINDS}
    assert {*JUDGED_RELATIONS} == {*RELATIONS}


def test_the_documentation_lists_every_quantity() -> None:
    text = (ROOT / "docs" / "reference" / "expectations.md").read_text(encoding="utf-8")
    for name in KINDS:
        assert f"| `{name}` |" in text


def test_the_lines_of_a_file_go_with_its_topology() -> None:
    topology = load_text(VALLEY + "    - level 5 lost == 0\n    - 'lost   ==0'\n", "valley.yaml")
    assert [one.text for one in topology.scenario.expect] == ["level 5 lost == 0", "lost == 0"]
    assert from_json(json.loads(json.dumps(to_json(topology)))) == topology


def test_mistakes_are_shown_with_a_caret_and_a_hint() -> None:
    outputs = []
    for line in WRONG:
        with pytest.raises(TopologyErrors) as caught:
            load_text(f'{VALLEY}    - "{line}"\n', "valley.yaml")
        outputs.append(f"{caught.value}\n")
    actual = "\n".join(outputs)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(actual, encoding="utf-8")
    assert actual == GOLDEN.read_text(encoding="utf-8")


def test_a_line_that_was_set_names_its_override() -> None:
    with pytest.raises(TopologyErrors, match=r"--set scenario\.expect: ") as caught:
        load_text(VALLEY + "    - lost == 0\n", "v.yaml", overrides=["scenario.expect=[lost = 0]"])
    assert caught.value.problems[0].line is None
