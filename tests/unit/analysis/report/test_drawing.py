"""The process that draws charts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import vl_convert
from markupsafe import escape

from analysis.errors import AnalysisError
from analysis.report import drawing

POINTS = {
    "data": {"values": [{"a": 1, "b": 2.5}, {"a": 3, "b": 4}]},
    "mark": "point",
    "encoding": {
        "x": {"field": "a", "type": "quantitative"},
        "y": {"field": "b", "type": "quantitative"},
    },
}
BARS = {**POINTS, "mark": "bar"}
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


def test_rows_are_drawn_as_the_list_that_they_hold():
    rows = drawing.Rows(POINTS["data"]["values"])
    assert str(drawing.begin({**POINTS, "data": {"values": rows}})) == str(drawing.begin(POINTS))


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
