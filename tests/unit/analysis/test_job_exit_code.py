"""The exit code of `testbed-job.py analyze` is that of `testbed analyze`."""

import pytest

from analysis.job import exit_code


@pytest.mark.parametrize(
    ("expectations", "trusted", "strict", "code"),
    [
        ([], True, True, 0),
        ([], False, False, 0),
        ([], False, True, 3),
        ([True], False, False, 0),
        ([True, False], True, False, 1),
        ([True, False], False, True, 1),
    ],
)
def test_unmet_expectations_go_before_warnings_which_count_only_if_asked_for(
    expectations: list[bool], trusted: bool, strict: bool, code: int
) -> None:
    verdicts = [{"ok": ok} for ok in expectations]
    summary = {"expectations": verdicts, "fidelity": {"ok": trusted, "reasons": []}}
    assert exit_code(summary, strict) == code
