"""The cells of the papers on overlays: complete, each once, and computable by the workers."""

import json
from collections import Counter
from dataclasses import asdict

import pytest

from analysis.papers.tables import COLUMNS
from testbed.converged.zorder_areas import Workload
from testbed.converged.zorder_levelling import Rule
from testbed.papers import banno2013, kawakami2016, kita2025, ogawa
from testbed.papers.cells import EXPERIMENTS, Cell, Extent, measure
from testbed.papers.waiting import BEGIN_S
from testbed.scenario import compile_timeline
from testbed.topology import load_text
from testbed.topology.model import NodeKind

PAPERS = (banno2013, kawakami2016, kita2025, ogawa)
EXTENTS = [make() for paper in PAPERS for make in (paper.full, paper.quick)]
TRIALS = 30


def named(extent: Extent) -> str:
    return f"{extent.cells[0].arguments['seed']} {extent.name}"


def of(extent: Extent, experiment: str) -> list[Cell]:
    return [cell for cell in extent.cells if cell.experiment == experiment]


def test_kita2025_has_every_pattern_size_number_of_subscribers_and_trial() -> None:
    whole = kita2025.full()
    topics = Counter((c.arguments["pattern"], c.arguments["nodes"]) for c in of(whole, "topics"))
    assert topics == dict.fromkeys(
        [(pattern, nodes) for pattern in "abcdef" for nodes in (1_000, 10_000, 100_000)], TRIALS
    )
    tables = Counter(c.arguments["subscribers"] for c in of(whole, "tables"))
    assert tables == dict.fromkeys([10, 20, 40, 80, 160, 320, 640, 1_280], TRIALS)
    assert {c.arguments["table_size"] for c in of(whole, "tables")} == {60}
    mixed = Counter(c.arguments["subscribers"] for c in of(whole, "mixed"))
    assert mixed == dict.fromkeys([10, 20, 40, 80, 160], TRIALS)


def test_banno2013_has_every_pattern_and_size_and_the_load() -> None:
    whole = banno2013.full()
    assert len(of(whole, "topics")) == 6 * 3 * TRIALS
    assert len(of(whole, "load")) == TRIALS
    assert {c.arguments["publishers"] for c in of(whole, "stopping")} == {10, 100}
    assert {c.arguments["nodes"] for c in of(whole, "stopping")} == {100_000}
    assert {tuple(c.arguments["methods"]) for c in of(whole, "topics")} == {("sg-tbps", "scribe")}


def test_kawakami2016_has_every_number_of_nodes_and_trial_by_each_reading() -> None:
    whole = kawakami2016.full()
    cells = Counter((c.arguments["nodes"], c.arguments["lists"]) for c in of(whole, "collection"))
    assert cells == dict.fromkeys(
        [
            (nodes, lists)
            for nodes in (100, 200, 300, 400, 500)
            for lists in ("line", "ring", "halves")
        ],
        10,
    )


@pytest.mark.parametrize("extent", [kawakami2016.full(), kawakami2016.quick()], ids=named)
def test_real_labs_are_those_that_are_simulated_and_publish_by_their_periods(
    extent: Extent,
) -> None:
    labs = kawakami2016.real_labs(extent)
    simulated = {c.arguments["wait_ms"] for c in of(extent, "waiting")}
    assert {0, 500, 2000} <= {lab.wait_ms for lab in labs} <= simulated
    assert len({lab.name for lab in labs}) == len(labs)
    for lab in labs:
        topology = load_text(lab.text(), "waiting.yaml")
        assert topology.seed == kawakami2016.SEED
        assert dict(topology.overlay.parameters)["wait_s"] == lab.wait_ms / 1000
        assert len(topology.of_kind(NodeKind.ROUTER)) == lab.sites == lab.sheet(0)["sites"]
        published = Counter(action.node for action in compile_timeline(topology))
        assert len(published) == lab.sites
        readings = lab.learnt_s + lab.measured_s - BEGIN_S
        assert sorted(published.values()) == sorted(
            -(-readings // period) for period in range(1, lab.longest_s + 1)
        )
        assert lab.learnt_s >= BEGIN_S + 3 * lab.longest_s


def test_ogawa_has_every_reading_of_the_text_beside_the_usual_one() -> None:
    whole = ogawa.full()
    assert Counter(c.arguments["give"] for c in of(whole, "levelling")) == {"both": 30, "left": 30}
    assert len(of(whole, "levelling_reading")) == TRIALS * len(list(ogawa.readings()))
    usual = {**asdict(Workload()), **asdict(Rule())}
    for reading in ogawa.readings():
        assert any(usual[name] != value for name, value in reading.items())


@pytest.mark.parametrize("extent", EXTENTS, ids=named)
def test_no_cell_is_computed_twice_and_all_can_be_sent(extent: Extent) -> None:
    texts = [json.dumps(cell.as_plain()) for cell in extent.cells]
    assert len(set(texts)) == len(texts)
    assert {cell.experiment for cell in extent.cells} <= set(EXPERIMENTS)


@pytest.mark.parametrize("extent", EXTENTS, ids=named)
def test_the_heaviest_cells_are_begun_first(extent: Extent) -> None:
    weights = [cell.weight for cell in extent.heaviest_first()]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) == len(extent.cells)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.__name__)
def test_fewer_trials_are_the_first_of_many(paper: object) -> None:
    whole, few = paper.full(), paper.full(2)  # type: ignore[attr-defined]
    assert few.trials == 2
    assert set(map(str, few.cells)) < set(map(str, whole.cells))


@pytest.mark.parametrize(
    "cell",
    [
        Cell(
            "topics",
            {"pattern": "e", "nodes": 100, "seed": 1, "trial": 3, "methods": ["sg-tbps", "scribe"]},
            1.0,
        ),
        Cell(
            "tables",
            {"subscribers": 10, "nodes": 200, "seed": 1, "trial": 3, "table_size": 60},
            1.0,
        ),
        Cell(
            "mixed",
            {"subscribers": 10, "nodes": 200, "seed": 1, "trial": 3, "stations": 5},
            1.0,
        ),
        Cell(
            "load",
            {"seed": 1, "trial": 3, "topics": 4, "subscribers": 20, "publications": 10},
            1.0,
        ),
        Cell(
            "stopping",
            {"publishers": 2, "nodes": 100, "seed": 1, "trial": 3, "subscribers": 5},
            1.0,
        ),
        Cell("collection", {"nodes": 20, "seed": 1, "trial": 3, "lists": "ring"}, 1.0),
        Cell(
            "waiting",
            {
                "wait_ms": 500,
                "longest_s": 2,
                "measured_s": 5,
                "seed": 1,
                "trial": 3,
            },
            1.0,
        ),
        *(
            Cell(experiment, {"nodes": 20, "rounds": 100, "bits": 5, "seed": 1, "trial": 3}, 1.0)
            for experiment in ("levelling", "levelling_reading")
        ),
    ],
    ids=lambda cell: cell.experiment,
)
def test_a_cell_gives_rows_of_the_tables_that_the_analysis_reads(cell: Cell) -> None:
    rows = list(measure(json.loads(json.dumps(cell.as_plain()))))
    assert rows
    for table, row in rows:
        assert list(row) == list(COLUMNS[table])
        assert row["trial"] == 3
        assert all(isinstance(row[name], kind) for name, kind in COLUMNS[table].items())
    assert list(measure(cell.as_plain())) == rows
