"""Control groups that limit processes to the resources of a small board."""

from pathlib import Path

import pytest

from benchmarks.support.delivery.small_machine import SmallMachines
from testbed.backends.docker.board_classes import MIB, Limits
from testbed.errors import MissingCapability

BOARD = Limits(512 * MIB, 0.2)


def written(root: Path) -> dict[str, str]:
    """The files of each control group, whatever its name."""
    files = (path for path in root.rglob("*") if path.is_file() and path.parent != root)
    return {path.name: path.read_text() for path in files}


def test_both_versions_of_control_groups_hold_a_process(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    for controller in ("cpu", "memory"):
        (one / controller).mkdir(parents=True)
    two.mkdir()
    (two / "cgroup.controllers").touch()
    for root in (one, two):
        with SmallMachines(BOARD, root) as machines:
            machines.hold(77)
    memory = str(512 * MIB)
    assert written(one) == {
        "cpu.cfs_period_us": "10000",
        "cpu.cfs_quota_us": "2000",
        "memory.limit_in_bytes": memory,
        "cgroup.procs": "77",
    }
    assert written(two) == {"cpu.max": "2000 10000", "memory.max": memory, "cgroup.procs": "77"}


def test_a_machine_that_is_slower_than_the_board_gives_a_whole_core(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    with SmallMachines(Limits(512 * MIB, None), tmp_path) as machines:
        machines.hold(77)
    assert written(tmp_path)["cpu.max"] == "max 100000"


def test_a_missing_control_group_hierarchy_is_reported(tmp_path: Path) -> None:
    with SmallMachines(BOARD, tmp_path / "nowhere") as machines, pytest.raises(MissingCapability):
        machines.hold(77)
