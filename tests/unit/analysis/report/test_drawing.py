"""The process that draws charts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import vl_convert

from analysis.report import drawing

POINTS = {
    "data": {"values": [{"a": 1, "b": 2.5}, {"a": 3, "b": 4}]},
    "mark": "point",
    "encoding": {
        "x": {"field": "a", "type": "quantitative"},
        "y": {"field": "b", "type": "quantitative"},
    },
}
SLEEPING = "from analysis.report import drawing; drawing.load(); print(drawing.number(), flush=True); input()"


def test_a_chart_is_that_of_the_library():
    assert drawing.draw(POINTS) == vl_convert.vegalite_to_svg(POINTS)


def test_rows_are_drawn_as_the_list_that_they_hold():
    rows = drawing.Rows(POINTS["data"]["values"])
    assert drawing.draw({**POINTS, "data": {"values": rows}}) == drawing.draw(POINTS)


def test_a_wrong_chart_is_an_error_and_the_next_one_is_drawn():
    with pytest.raises(ValueError, match="specification"):
        drawing.draw({})
    assert drawing.draw(POINTS).startswith("<svg")


def test_an_interrupted_question_does_not_get_into_the_next_answer(monkeypatch):
    expected = drawing.draw(POINTS)
    with monkeypatch.context() as patch:
        patch.setattr(drawing, "_read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            drawing.draw({**POINTS, "mark": "bar"})
    assert drawing.draw(POINTS) == expected


def interrupt(_pipe: object) -> str:
    raise KeyboardInterrupt


def test_a_process_that_was_killed_is_an_error_and_the_next_chart_is_drawn():
    drawing.load()
    os.kill(drawing.number(), signal.SIGKILL)
    with pytest.raises((RuntimeError, BrokenPipeError)):
        drawing.draw(POINTS)
    assert drawing.draw(POINTS).startswith("<svg")


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
