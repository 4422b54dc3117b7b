"""Fixtures for tests of commands."""

import pytest

from analysis.spark.local_java import LocalJava


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no Java ahead of an analysis that the test replaces."""
    monkeypatch.setattr(LocalJava, "start", lambda _: None)
