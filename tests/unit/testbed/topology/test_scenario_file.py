"""A scenario in a file of its own is checked together with the topology; each problem names its own file."""

import json
from pathlib import Path

import jsonschema
import pytest

from testbed.topology import TopologyErrors, find_likely_mistakes, load, load_text, scenario_schema
from testbed.topology.parse.yaml_reader import read

ROOT = Path(__file__).resolve().parents[4]
MINIMAL = ROOT / "topologies" / "minimal.yaml"
SAMPLES = sorted((ROOT / "topologies" / "scenarios").glob("*.yaml"))


def topology_of(sample: Path) -> Path:
    """The second line of each sample names the topology that it is for."""
    return ROOT / sample.read_text().splitlines()[1].removeprefix("# For ").split(":")[0]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "happens.yaml"
    path.write_text(text)
    return path


def test_a_scenario_file_equals_the_scenario_section_of_a_topology(tmp_path: Path) -> None:
    text = "duration: 3s\nevents:\n  - {at: 1s, crash: {nodes: siren}}\n"
    nested = "".join(f"  {line}\n" for line in text.splitlines())
    inside = MINIMAL.read_text().split("scenario:")[0] + f"scenario:\n{nested}"
    assert load(MINIMAL, scenario=written(tmp_path, text)) == load_text(inside, "minimal.yaml")


def test_problems_of_both_files_are_reported_together_each_at_its_place(tmp_path: Path) -> None:
    scenario = written(tmp_path, "duration: 3s\nevents:\n  - at: 1s\n    crash: {nodes: sirene}\n")
    text = MINIMAL.read_text().replace("kind: sensor", "kind: senser")
    with pytest.raises(TopologyErrors) as caught:
        load_text(text, "valley.yaml", scenario=scenario)
    first, second = caught.value.problems
    assert (first.file, first.line, first.hint) == ("valley.yaml", 9, "did you mean 'sensor'?")
    assert (second.file, second.line, second.column) == (str(scenario), 4, 20)
    assert second.snippet == "    crash: {nodes: sirene}"
    assert second.hint == "did you mean 'siren'?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- at: 1s\n", "a mapping (key: value) is expected here, not a list"),
        ("events: []\n", "`duration` is missing here"),
        ("duration: 3s\nduration: 4s\n", "key 'duration' appears twice; the first is on line 1"),
        ("scenario: {duration: 3s}\n", "unknown key 'scenario'"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, text: str, message: str) -> None:
    scenario = written(tmp_path, text)
    with pytest.raises(TopologyErrors) as caught:
        load(MINIMAL, scenario=scenario)
    assert (str(scenario), message) in [(p.file, p.message) for p in caught.value.problems]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "storm.yaml").write_text("duration: 1s\n")
    with pytest.raises(TopologyErrors) as caught:
        load(MINIMAL, scenario=tmp_path / "strom.yaml")
    assert caught.value.problems[0].hint == "did you mean 'storm.yaml'?"


def test_the_committed_schema_is_current() -> None:
    committed = (ROOT / "topologies" / "scenario.schema.json").read_text(encoding="utf-8")
    assert json.loads(committed) == scenario_schema(), (
        "run: testbed schema --scenario > topologies/scenario.schema.json"
    )


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_begin_with_their_schema_satisfy_it_and_have_no_likely_mistakes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../scenario.schema.json\n# For ")
    validator = jsonschema.Draft202012Validator(scenario_schema())
    validator.validate(read(text, path.name)[0].data)
    assert find_likely_mistakes(load(topology_of(path), scenario=path)) == ()


def test_there_are_samples() -> None:
    assert SAMPLES
