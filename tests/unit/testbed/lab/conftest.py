"""Labs on the fake backend, which is gone after each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.labs.fake_labs import FakePlace


@pytest.fixture
def place(places: Path) -> Iterator[FakePlace]:
    fake = FakePlace()
    yield fake
    for backend in fake.backends.values():
        backend.destroy()


@pytest.fixture
def file(places: Path) -> Path:
    path = places / "valley.yaml"
    path.write_text("name: valley\n")
    return path
