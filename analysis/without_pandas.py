"""Keeps pandas out of the processes of a command.

pyarrow imports pandas, if it is installed, as soon as it makes an array of a list. That takes 0.1 to 0.3 s in each
process. No command of ours uses pandas; notebooks may, so only commands call this.
"""

import os
import sys

_VARIABLE = "TESTBED_WITHOUT_PANDAS"


class _Finder:
    """Says that there is no pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out of this process", name=name)


def leave_pandas_out() -> None:
    """Let `import pandas` fail here, and in the Python workers of a Spark that this process starts."""
    if not is_left_out():
        sys.meta_path.insert(0, _Finder)


def let_pandas_in() -> None:
    """Undo it: Spark's DataFrames need pandas for functions in Python."""
    if is_left_out():
        sys.meta_path.remove(_Finder)


def is_left_out() -> bool:
    """Whether `import pandas` fails here."""
    return _Finder in sys.meta_path


def variables() -> dict[str, str]:
    """The variables by which Spark's workers know it."""
    return {_VARIABLE: "1"} if is_left_out() else {}


def leave_out_if_asked() -> None:
    """Leave it out in a worker that knows it by this variable."""
    if os.environ.get(_VARIABLE):
        leave_pandas_out()
