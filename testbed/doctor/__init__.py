"""Examines this machine: what it lacks, what each lack costs, and the commands that help.

`probe` asks the machine, `judge` interprets the answers, `remedies` holds and runs the commands.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from testbed.doctor.checks import judge
from testbed.doctor.facts import Facts, Means, probe
from testbed.doctor.remedies import Check, Repair

__all__ = ["Check", "Facts", "Means", "Repair", "as_json", "examine", "judge", "probe"]


def examine(java: Iterable[Check]) -> tuple[Check, ...]:
    """All findings; those on Java come from the caller, as only the command line knows the analysis."""
    return (*judge(probe()), *java)


def as_json(checks: Iterable[Check]) -> dict[str, Any]:
    """The findings as a JSON document."""
    return {"checks": [asdict(check) for check in checks]}
