"""Spark that is kept ready: the same numbers, for several commands at once, and nothing left when it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import analyze
from analysis.query import ask_runs
from analysis.report import drawer
from analysis.spark.local_java import LocalJava
from analysis.spark.session import open_context
from analysis.spark.warm import WarmSpark
from support.runs.star_runs import StarRun, publications

pytestmark = pytest.mark.spark
PATIENCE_S = 200
LONG_S = 10_000.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    StarRun(publications=list(publications(20, 2))).write(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all temporary files go."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def warm(places: Path, scratch: Path):
    spark = WarmSpark(places / "s" / ".spark")
    spark.start(LONG_S, drawer.__name__)
    yield spark
    spark.stop()


def ignore(*_: object) -> None:
    pass


def ends(pid: int) -> bool:
    limit = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def test_measurements_and_queries_share_it_and_are_those_of_a_session_of_their_own(
    warm, run, no_spark
):
    java = warm.status()["java"]
    at_first = analyze(run, master=warm.master)
    again = analyze(run, master=warm.master)
    sql = "SELECT count(*) AS n FROM deliveries"
    answer = ask_runs(sql, [read_run(run)], 10, ignore, warm.master)
    assert answer["rows"] == [{"n": at_first["messages"]["delivered"]}]
    assert at_first == again == analyze(run)
    found = warm.status()
    assert (found["java"], found["used_by"]) == (java, 0)
    assert found["ends_in_s"] > LONG_S / 2


def test_commands_at_the_same_time_do_not_disturb_each_other(warm, places, run, testbed):
    program = [sys.executable, "-m", "testbed", "analyze", "--no-report", "--json"]
    copies = [run.with_name(f"copy-{number}") for number in range(3)]
    for copy in copies:
        StarRun(publications=list(publications(20, 2))).write(copy)
    with (
        subprocess.Popen([*program, copies[0]], stdout=subprocess.PIPE) as one,
        subprocess.Popen([*program, copies[1]], stdout=subprocess.PIPE) as two,
        subprocess.Popen(
            [*program, copies[2]], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as interrupted,
    ):
        assert interrupted.stderr is not None
        while b"reading" not in (line := interrupted.stderr.readline()):
            assert line
        interrupted.send_signal(signal.SIGINT)
        documents = [
            json.loads(process.communicate(timeout=PATIENCE_S)[0]) for process in (one, two)
        ]
        interrupted.communicate(timeout=PATIENCE_S)
    assert [process.returncode for process in (one, two, interrupted)] == [0, 0, 130]
    assert {document["messages"]["delivered"] for document in documents} == {40}
    assert not (copies[2] / "metrics.unfinished").exists()
    assert warm.status()["used_by"] == 0
    assert json.loads(testbed("spark", "status", "--json").stdout)["current"]


def test_the_process_that_draws_is_kept_ready_and_ends_with_spark(warm, run, testbed):
    server = warm.status()["pid"]
    drawing = _drawing_process(server)
    before = _processor_ticks(drawing)
    assert testbed("analyze", run).returncode == 0
    assert (run / "report.html").read_text().count("<svg") > 3
    assert _processor_ticks(drawing) > before
    os.kill(server, signal.SIGKILL)
    assert ends(drawing)


def _drawing_process(server: int) -> int:
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    (found,) = [
        pid for pid in children if drawer.__name__ in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    return int(found)


def _processor_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_stopping_leaves_no_process_and_no_file(warm, places, scratch, testbed_json):
    found = warm.status()
    assert testbed_json("spark", "stop") == {"stopped": True}
    assert ends(found["pid"])
    assert ends(found["java"])
    assert list(scratch.iterdir()) == []
    assert not warm.folder.exists()
    assert testbed_json("spark", "status") == {"ready": False}
    assert testbed_json("spark", "stop") == {"stopped": False}


def test_down_removes_what_a_killed_server_has_left(warm, places, scratch, testbed_json):
    found = warm.status()
    os.kill(found["pid"], signal.SIGKILL)
    assert ends(found["java"])  # it ends with its standard input
    assert list(scratch.glob("testbed-spark-*"))
    assert testbed_json("spark", "status") == {"ready": False}
    assert testbed_json("down", "--all")["removed"] == ["Spark that was kept ready"]
    assert list(scratch.iterdir()) == []
    assert not warm.folder.exists()


def test_it_ends_when_nobody_has_used_it_for_a_while_or_its_java_has_ended(places, scratch):
    for idle_s, kills_java in ((0.5, False), (LONG_S, True)):
        spark = WarmSpark(places / "s" / ".spark")
        found = spark.start(idle_s)
        if kills_java:
            os.kill(found["java"], signal.SIGKILL)
        assert ends(found["pid"])
        assert spark.status() is None
        assert list(scratch.iterdir()) == []


def test_an_interrupted_start_leaves_nothing(places, scratch):
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed", "spark", "start"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + PATIENCE_S
    while not list(scratch.glob("testbed-spark-*")):
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Spark was not started" in said
    assert list(scratch.iterdir()) == []
    assert WarmSpark(places / "s" / ".spark").status() is None


def test_stopping_during_a_start_ends_the_server(places, scratch, wait_until):
    spark = WarmSpark(places / "s" / ".spark")
    with subprocess.Popen(
        [sys.executable, "-m", "testbed", "spark", "start"], stderr=subprocess.PIPE, text=True
    ) as starting:
        wait_until(lambda: list(scratch.glob("testbed-spark-*")), PATIENCE_S)
        assert spark.stop()
        _, said = starting.communicate(timeout=PATIENCE_S)
    assert spark.status() is None
    assert list(scratch.iterdir()) == []
    assert "Traceback" not in said


def test_two_starts_at_once_have_one_server(places, scratch):
    program = [sys.executable, "-m", "testbed", "spark", "start", "--json"]
    with (
        subprocess.Popen(program, stdout=subprocess.PIPE) as one,
        subprocess.Popen(program, stdout=subprocess.PIPE) as two,
    ):
        said = [json.loads(each.communicate(timeout=PATIENCE_S)[0]) for each in (one, two)]
    spark = WarmSpark(places / "s" / ".spark")
    found = spark.status()
    assert spark.stop()
    assert [each.returncode for each in (one, two)] == [0, 0]
    assert {each["pid"] for each in said} == {found["pid"]}
    assert list(scratch.iterdir()) == []


KILLED = """
import sys, time
from pathlib import Path
from analysis.spark.session import open_context

def in_folder(folder):
    def work(number):
        for _ in range(600):
            time.sleep(0.1)
            Path(folder, f"alive-{number}").write_text(str(time.time()))
    return work

with open_context(sys.argv[1]) as context:
    context.parallelize([1, 2], 2).foreach(in_folder(sys.argv[2]))
"""


def test_the_jobs_of_a_killed_client_end(warm, tmp_path, wait_until):
    seen = tmp_path / "seen"
    seen.mkdir()
    with subprocess.Popen([sys.executable, "-c", KILLED, warm.master, str(seen)]) as client:
        wait_until(lambda: list(seen.glob("alive-*")), PATIENCE_S)
        client.kill()

    def quiet() -> bool:
        before = {file: file.read_text() for file in seen.glob("alive-*")}
        time.sleep(2)
        return before == {file: file.read_text() for file in seen.glob("alive-*")}

    wait_until(quiet)
    assert warm.status()["used_by"] == 0


def test_a_socket_in_a_folder_that_others_can_enter_is_not_used(places, tmp_path):
    spark = WarmSpark(tmp_path / "spark")
    spark.folder.mkdir(mode=0o700)
    spark.socket.touch()
    spark.folder.chmod(0o755)
    assert spark.status() is None
    assert not spark.stop()
    assert spark.socket.exists()


def test_the_master_that_is_asked_for_goes_before_a_java_for_another_one(no_spark):
    with LocalJava() as java, open_context("local[1]", java=java) as context:
        assert context.master == "local[1]"


def test_no_module_of_the_current_folder_is_imported(places, run, tmp_path):
    """A run folder may come from a stranger, and may have files with the names of modules."""
    for name in ("vl_convert", "pyarrow", "json", "analysis", "testbed"):
        (run / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')\n")
    program = Path(sys.executable).parent / "testbed"
    done = subprocess.run(
        [program, "analyze", "."], cwd=run, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
