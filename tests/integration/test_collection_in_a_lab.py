"""A collection on real 3G lines: every reading comes once, and the captures show what travelled joined."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from small_collection import READINGS, collection_file


@pytest.mark.netns
@pytest.mark.spark
def test_every_reading_comes_once_over_3g_lines_and_is_seen_joined(
    testbed_json: Any, analyzed: Any, places: Path
) -> None:
    file = places / "collects.yaml"
    file.write_text(collection_file("collects"))
    run = Path(testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"])
    for command in ("play", "down"):
        testbed_json(command, "collects", codes=(0, 3))
    analyzed(run)
    delivered = pq.read_table(run / "metrics" / "deliveries.parquet").to_pylist()
    assert len(delivered) == READINGS + 1
    assert {row["status"] for row in delivered} == {"delivered"}
    assert {row["handed"] for row in delivered} == {1}
    seen = pq.read_table(run / "metrics" / "messages.parquet").to_pylist()
    publications = [row for row in seen if row["kind"] == "PUBLISH"]
    assert max(row["joined"] for row in publications) > 1
    assert {row["joined"] for row in publications if row["priority"] == 5} == {1}
    assert not [row for row in seen if row["kind"] == "JOINED"], "all could be taken apart"
    for row in delivered:
        assert row["path"][0].startswith("gauges-")
        assert row["path"][-2:] == ["center", "office"]
        assert row["hops"] == len(row["path"]) - 1 >= 3
