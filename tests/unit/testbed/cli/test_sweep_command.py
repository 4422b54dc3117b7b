"""A change of anything that decides the cells of a sweep makes it another sweep."""

import json
from pathlib import Path

from typer.testing import CliRunner

from testbed.cli.app import app

VALLEY = """\
groups:
  sensors: {kind: sensor, count: 2, link: lan}
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, link: lan, topics: [alerts]}
scenario: {duration: 1h}
"""


def folder_of(file: Path, *options: str) -> str:
    """Where the sweep would go."""
    result = CliRunner().invoke(app, ["sweep", str(file), *options, "--dry-run", "--json"])
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)["folder"])


def test_a_sweep_goes_on_in_its_folder_until_a_file_that_any_of_its_cells_reads_is_edited(
    tmp_path: Path,
) -> None:
    file = tmp_path / "valley.yaml"
    file.write_text(VALLEY)
    for name in ("calm", "storm"):
        (tmp_path / f"{name}.csv").write_text("seconds,mm_per_h\n0,5\n3600,0\n")
    hazard = '{kind: landslide, nodes: "sensors[*]", rain: {file: %s.csv}}'
    values = f"scenario.hazard={hazard % 'calm'},{hazard % 'storm'}"
    first = folder_of(file, "--set", values)
    assert folder_of(file, "--set", values) == first
    (tmp_path / "storm.csv").write_text(
        "seconds,mm_per_h\n0,80\n3600,0\n"
    )  # only of the second cell
    assert folder_of(file, "--set", values) != first
