"""The JSON Schema is valid, current, and agrees with the reader; every example in the documentation is valid."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from nodes.delivery import METHODS as DELIVERY_METHODS
from nodes.delivery.queues import LIMIT_BYTES
from nodes.overlay import METHODS as OVERLAY_METHODS
from testbed.topology import find_likely_mistakes, json_schema, load, load_text
from testbed.topology.parse.yaml_reader import read

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted((ROOT / "topologies").glob("*.yaml"))
PAPERS = sorted((ROOT / "topologies" / "papers").glob("*.yaml"))
DOCUMENTS = [
    ROOT / "docs" / name
    for name in ("reference/topology.md", "reference/scenarios.md", "explanation/hazards.md")
]
DOCUMENT = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
GOLDEN = ROOT / "tests" / "golden" / "topology"


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


def test_the_schema_is_valid_and_describes_every_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in (schema, *schema["$defs"].values()):
        for key, described in part["properties"].items():
            assert described.get("description"), key


def test_the_committed_schema_is_current() -> None:
    committed = (ROOT / "topologies" / "topology.schema.json").read_text(encoding="utf-8")
    assert json.loads(committed) == json_schema(), (
        "run: testbed schema > topologies/topology.schema.json"
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_begin_with_their_schema_and_satisfy_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=topology.schema.json\n")
    validator().validate(read(text, path.name)[0].data)


@pytest.mark.parametrize("path", [*EXAMPLES, *PAPERS], ids=lambda path: path.stem)
def test_examples_are_valid_files_without_likely_mistakes(path: Path) -> None:
    assert find_likely_mistakes(load(path)) == ()


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_files_of_papers_begin_with_their_schema(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../topology.schema.json\n")


@pytest.mark.parametrize(
    "name",
    [
        "bare-numbers",
        "wrong-units",
        "unknown-key",
        "unknown-profile-kind-method",
        "names",
        "no-values",
        "places",
        "yaml-traps",
        "sections-of-the-wrong-kind",
    ],
)
def test_an_editor_sees_wrong_shapes_too(name: str) -> None:
    text = (GOLDEN / "errors" / f"{name}.yaml").read_text(encoding="utf-8")
    assert list(validator().iter_errors(read(text, name)[0].data))


def completed(block: str) -> str:
    """A fragment, merged into the smallest file."""
    minimal = (ROOT / "topologies" / "minimal.yaml").read_text(encoding="utf-8")
    own = set(re.findall(r"^(\w+):", block, re.MULTILINE))
    sections = re.split(r"(?m)^(?=\w+:)", minimal)
    kept = [section for section in sections if section.split(":", 1)[0] not in own]
    return "".join(kept) + block


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n", 1)[0])
def test_every_example_of_the_documentation_is_a_valid_file(block: str) -> None:
    complete = block if "nodes:" in block else completed(block)
    assert find_likely_mistakes(load_text(complete, "docs/reference/topology.md")) == ()
    validator().validate(read(complete, "docs/reference/topology.md")[0].data)


def test_the_documentation_names_the_capacity_of_a_queue() -> None:
    assert f"in bytes ({LIMIT_BYTES}:" in DOCUMENT


def test_the_documentation_names_every_method() -> None:
    for method in (*OVERLAY_METHODS, *DELIVERY_METHODS):
        assert f"| `{method}`: " in DOCUMENT, method


def test_the_documentation_names_every_key() -> None:
    schema = json_schema()
    for part in (schema, *schema["$defs"].values()):
        for key in part["properties"]:
            assert f"`{key}`" in DOCUMENT, key
