"""The process that draws charts."""

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from markupsafe import escape

from analysis.errors import AnalysisError
from analysis.report import drawer, drawing

POINTS = {
    "data": {"values": [{"a": 1, "b": 2.5}, {"a": 3, "b": 4}]},
    "mark": "point",
    "encoding": {
        "x": {"field": "a", "type": "quantitative"},
        "y": {"field": "b", "type": "quantitative"},
    },
}
BARS = {**POINTS, "mark": "bar"}
DRAWING = """
import json, os, sys
from pathlib import Path
from analysis.report import drawing
drawing.load(Path(sys.argv[1]))
charts = [drawing.begin(json.loads(text)) for text in sys.argv[2:]]
svgs = [str(chart) for chart in charts]
print(json.dumps([drawing._drawer(os.getpid()).pid, svgs]))
"""
SLEEPING = """
import os
from analysis.errors import AnalysisError
from analysis.report import drawing
drawing.load()
print(drawing._drawer(os.getpid()).pid, flush=True)
input()
"""


def pid() -> int:
    return drawing._drawer(os.getpid()).pid


def test_charts_are_those_of_the_library_in_any_order():
    points, bars = drawing.begin(POINTS), drawing.begin(BARS)
    assert str(bars) == vl_convert.vegalite_to_svg(BARS)
    assert str(points) == vl_convert.vegalite_to_svg(POINTS)


def test_a_template_puts_the_finished_chart_in_as_it_is():
    chart = drawing.begin(POINTS, lambda svg: svg.replace("<svg ", '<svg role="img" ', 1))
    assert escape(chart).startswith('<svg role="img" ')


@pytest.fixture
def ready(tmp_path: Path):
    """The socket and the process of one that is kept ready."""
    path = tmp_path / "beside"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        command = [sys.executable, "-m", drawer.__name__, str(listening.fileno())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listening.fileno()])
    yield path, process
    process.communicate(timeout=60)  # it ends with its standard input


def drawn_by(path: Path, *charts: dict[str, Any]) -> tuple[int | None, list[str]]:
    """The process that another one started to draw these charts, if it did, and their SVG."""
    done = subprocess.run(
        [sys.executable, "-c", DRAWING, str(path), *map(json.dumps, charts)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    started, svgs = json.loads(done.stdout)
    return started, svgs


def test_several_processes_use_one_that_is_kept_ready(ready):
    path, _ = ready
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda chart: drawn_by(path, chart, POINTS), (POINTS, BARS)))
    expected = [vl_convert.vegalite_to_svg(chart) for chart in (POINTS, BARS)]
    assert found == [(None, [expected[0], expected[0]]), (None, [expected[1], expected[0]])]


def test_without_one_that_is_kept_ready_a_process_starts_its_own(ready):
    path, process = ready
    process.kill()
    process.wait()
    started, svgs = drawn_by(path, POINTS)
    assert started is not None
    assert svgs == [vl_convert.vegalite_to_svg(POINTS)]


def test_if_one_that_is_kept_ready_ends_the_chart_is_drawn_by_a_process_of_its_own(tmp_path):
    path = tmp_path / "beside"
    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor() as pool:
        listening.bind(str(path))
        listening.listen()
        drawn = pool.submit(drawn_by, path, POINTS)
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as questions:
            assert json.loads(drawer.read(questions)) == POINTS
    started, svgs = drawn.result()
    assert started is not None
    assert svgs == [vl_convert.vegalite_to_svg(POINTS)]


def test_a_wrong_chart_is_an_error_and_the_next_one_is_drawn():
    wrong, right = drawing.begin({}), drawing.begin(POINTS)
    with pytest.raises(ValueError, match="specification"):
        str(wrong)
    assert str(right).startswith("<svg")


def test_a_process_that_was_killed_is_an_error_and_the_next_chart_is_drawn():
    str(drawing.begin(POINTS))
    os.kill(pid(), signal.SIGKILL)
    with pytest.raises(AnalysisError, match="ended with -9"):
        str(drawing.begin(POINTS))
    assert str(drawing.begin(POINTS)).startswith("<svg")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, None])
def test_it_ends_with_the_process_for_which_it_draws(ending, wait_until):
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        assert Path(f"/proc/{number}").exists()
        if ending is None:
            process.communicate("\n")
        else:
            process.send_signal(ending)
    wait_until(lambda: not Path(f"/proc/{number}").exists())
