"""Cores take chance only as an argument: of `random` they may know the type, but nothing with a state of its own."""

import ast
from pathlib import Path

import pytest

import nodes

HERE = Path(nodes.__path__[0])
CORES = sorted(
    [
        HERE / "parameters.py",
        *(HERE / "protocol").rglob("*.py"),
        *(HERE / "overlay").rglob("*.py"),
        *(HERE / "delivery").rglob("*.py"),
    ]
)


def chances(source: str) -> list[str]:
    """What the source takes from `random` and `secrets`, but for the type Random."""
    taken = []
    for item in ast.walk(ast.parse(source)):
        if isinstance(item, ast.Import):
            taken += [alias.name for alias in item.names]
        elif isinstance(item, ast.ImportFrom):
            taken += [f"{item.module}.{alias.name}" for alias in item.names]
        elif isinstance(item, ast.Call) and ast.unparse(item) == "Random()":
            taken.append("random.Random()")
    return [
        name
        for name in taken
        if name.split(".")[0] in ("random", "secrets") and name != "random.Random"
    ]


@pytest.mark.parametrize("path", CORES, ids=lambda path: str(path.relative_to(HERE)))
def test_a_core_has_no_chance_of_its_own(path: Path) -> None:
    assert chances(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import random as chance",
        "from random import choice",
        "from random import Random, shuffle",
        "from random import SystemRandom as Random",
        "import secrets",
        "def f():\n    from random import random",
        "from random import Random\nown = Random()",
    ],
)
def test_a_core_that_had_one_would_be_found(source: str) -> None:
    assert chances(source)
    assert chances("from random import Random\nseeded = Random(7)") == []
