"""The limit of open files is raised. A separate process tests it."""

import subprocess
import sys

import pytest

CODE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({now}, {most}))
from testbed.limits import raise_open_files
raise_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("now", "most", "then"),
    [(256, 4096, "4096 4096"), (4096, 4096, "4096 4096")],
)
def test_a_process_raises_its_open_files_to_the_hard_limit(now: int, most: int, then: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(now=now, most=most)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == then


def test_a_process_takes_no_more_open_files_than_it_could_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import resource

    from testbed import limits

    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: given.append(both))
    limits.raise_open_files()
    assert given == [(limits.ENOUGH, resource.RLIM_INFINITY)]
