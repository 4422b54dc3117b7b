"""Golden files: the messages of a wrong file, and the expansion of a valid one.

After an intended change, run the tests once with UPDATE_GOLDEN=1 and read the difference.
"""

import json
import os
from pathlib import Path

import pytest

from testbed.topology import TopologyErrors, load, load_text
from testbed.topology.model import from_json, to_json

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "topology"
TOPOLOGIES = GOLDEN.parents[2] / "topologies"
ERRORS = sorted((GOLDEN / "errors").glob("*.yaml"))
LARGE = ("valleys-300", "kochi-landslide")
SMALL = [path for path in sorted(TOPOLOGIES.glob("*.yaml")) if path.stem not in LARGE]
EXPANDED = [*sorted((GOLDEN / "expanded").glob("*.yaml")), *SMALL]


def agree(golden: Path, actual: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(actual, encoding="utf-8")
    assert actual == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: path.stem)
def test_an_invalid_file_gives_these_errors(path: Path) -> None:
    with pytest.raises(TopologyErrors) as caught:
        load_text(path.read_text(encoding="utf-8"), path.name)
    agree(path.with_suffix(".txt"), f"{caught.value}\n")


@pytest.mark.parametrize("path", EXPANDED, ids=lambda path: path.stem)
def test_a_valid_file_becomes_this_topology(path: Path) -> None:
    topology = load(path)
    actual = json.dumps(to_json(topology), indent=1, ensure_ascii=False)
    agree(GOLDEN / "expanded" / f"{path.stem}.json", f"{actual}\n")
    assert from_json(json.loads(actual)) == topology


def test_there_are_golden_files() -> None:
    assert len(ERRORS) > 20
    assert len(EXPANDED) > 3
