"""The commands in the report that repeat the run."""

import json

from analysis.inputs.run_folder import read_run
from analysis.report.report import commands
from support.runs.star_runs import StarRun


def first_command(tmp_path, files: list) -> tuple[str, str]:
    """The commands of a run whose first node is an external program with these files."""
    folder = tmp_path / "run"
    StarRun(sensors=1, subscribers=1).write(folder)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["source"] = "/home/me/my valley.yaml"
    manifest["topology"]["nodes"][0]["external"] = {"files": files}
    (folder / "run.json").write_text(json.dumps(manifest))
    return commands(read_run(folder))[0]


def test_the_runs_own_copy_of_the_file_is_run_again(tmp_path):
    command, _ = first_command(tmp_path, [])
    assert command.startswith(f"testbed run {tmp_path}/run/topology.yaml --backend ")


def test_a_file_that_reads_others_is_run_where_they_are(tmp_path):
    command, why = first_command(tmp_path, [["/etc/broker.conf", "listener 1883"]])
    assert command.startswith("testbed run '/home/me/my valley.yaml' --backend ")
    assert why.endswith(f"its text as it was: {tmp_path}/run/topology.yaml")
