"""`down --all` also ends the Spark that is kept ready."""

from pathlib import Path

from analysis.errors import AnalysisError
from analysis.spark.warm import WarmSpark
from testbed.cli.commands.down import _with_spark
from testbed.lab.orphans import Cleared

CLEARED = Cleared(("a lab",), ("a process",))


def test_what_does_not_end_is_left(places: Path, monkeypatch) -> None:
    def stop(_: WarmSpark) -> bool:
        raise AnalysisError("The server does not end.", "")

    monkeypatch.setattr(WarmSpark, "stop", stop)
    assert _with_spark(CLEARED) == Cleared(
        CLEARED.removed, ("a process", "The server does not end.")
    )


def test_what_has_ended_is_named(places: Path, monkeypatch) -> None:
    monkeypatch.setattr(WarmSpark, "stop", lambda _: True)
    assert _with_spark(CLEARED) == Cleared(("a lab", "Spark that was kept ready"), CLEARED.left)


def test_without_a_server_nothing_is_said(places: Path) -> None:
    assert _with_spark(CLEARED) == CLEARED
