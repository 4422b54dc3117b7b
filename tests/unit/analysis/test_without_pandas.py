"""Commands do without pandas, which pyarrow would import."""

import subprocess
import sys

from analysis import without_pandas

PROGRAM = """
import sys
from analysis import without_pandas
without_pandas.{first}()
import pyarrow as pa
assert pa.array([1, 2]).to_pylist() == [1, 2]
print("pandas" in sys.modules, without_pandas.variables())
without_pandas.let_pandas_in()
import pandas
print("pandas" in sys.modules, without_pandas.variables())
"""


def said(first: str, **env: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(first=first)],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    return done.stdout.splitlines()


def test_pyarrow_works_without_pandas_until_it_is_let_in():
    out, into = ["False {'TESTBED_WITHOUT_PANDAS': '1'}", "True {}"]
    assert said("leave_pandas_out") == [out, into]
    assert said("leave_out_if_asked", TESTBED_WITHOUT_PANDAS="1") == [out, into]
    assert said("leave_out_if_asked") == [into, into]


def test_it_is_left_out_once(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = [*sys.meta_path]
    without_pandas.leave_pandas_out()
    without_pandas.leave_pandas_out()
    assert len(sys.meta_path) == len(before) + 1
    without_pandas.let_pandas_in()
    assert sys.meta_path == before
