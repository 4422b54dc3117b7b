"""The pages of docs/reference that `make reference` writes are current, and describe every column."""

import importlib
import pkgutil
from pathlib import Path

import pyarrow as pa
import pytest

import analysis.metrics
from analysis.metrics.tables import USUAL_COLUMNS
from scripts.reference import TABLES, TIMES, Schema, columns, pages

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"
# Schemas of tables between the stages of the analysis, which are no files.
INNER = {"RECEPTIONS", "DROPS", "FOLLOWED", "FORWARDS_BY_TOPIC", "PARTICIPANTS", "COUNTED"}


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize(
    "page", ["actions.md", "commands.md", "profiles.md", "tables.md", "topology-keys.md"]
)
def test_a_page_is_current(made: dict[str, str], page: str) -> None:
    assert (REFERENCE / page).read_text(encoding="utf-8") == made[page], "run: make reference"


def test_every_page_is_compared(made: dict[str, str]) -> None:
    assert sorted(made) == [
        "actions.md",
        "commands.md",
        "profiles.md",
        "tables.md",
        "topology-keys.md",
    ]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_describes_its_columns_and_no_others(table: str) -> None:
    module, prefix = TABLES[table]
    names = getattr(module, f"{prefix}SCHEMA").names
    own = getattr(module, f"{prefix}COLUMNS")
    assert list(columns(table)) == names
    assert set(own) <= set(names)
    assert all(own[name] != USUAL_COLUMNS.get(name) for name in own)


def test_every_schema_of_a_metric_is_a_table_of_the_page() -> None:
    listed = {(module.__name__, f"{prefix}SCHEMA") for module, prefix in TABLES.values()}
    for found in pkgutil.iter_modules(analysis.metrics.__path__, "analysis.metrics."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, pa.Schema) and name not in INNER:
                assert (module.__name__, name) in listed, f"{module.__name__}.{name}"


def test_every_action_is_on_the_page(made: dict[str, str]) -> None:
    actions = set(Schema().section("RawEvent")["properties"]) - set(TIMES)
    assert len(actions) > 10
    for action in actions:
        assert f"| `{action}` |" in made["actions.md"] or f"| [{action}](#" in made["actions.md"]
