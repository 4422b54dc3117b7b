"""The values that the doctor reads from /proc and /sys."""

from pathlib import Path

import pytest

from testbed.doctor.facts import available_memory, existing, inotify_instances, task_capacity


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine of 1,000 tasks that may have 32,768."""
    proc = tmp_path / "proc"
    for name, text in {
        "loadavg": "0.10 0.20 0.30 2/1000 4711\n",
        "sys/kernel/pid_max": "32768\n",
        "sys/kernel/threads-max": "190000\n",
        "sys/fs/inotify/max_user_instances": "128\n",
        "self/cgroup": "0::/user.slice/me\n",
        "meminfo": "MemTotal: 2000 kB\nMemAvailable:     1000 kB\n",
    }.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text)
    return proc


def limit(group: Path, most: str, now: int) -> None:
    group.mkdir(parents=True, exist_ok=True)
    (group / "pids.max").write_text(f"{most}\n")
    (group / "pids.current").write_text(f"{now}\n")


def test_without_other_limits_the_kernels_own_counts(proc: Path, tmp_path: Path) -> None:
    limit(tmp_path / "groups" / "user.slice" / "me", "max", 5)
    assert task_capacity(proc, tmp_path / "groups") == (31768, "kernel.pid_max")


def test_the_narrowest_group_on_the_way_up_counts(proc: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    limit(groups / "user.slice" / "me", "max", 5)
    limit(groups / "user.slice", "300", 100)
    assert task_capacity(proc, groups) == (200, str(groups / "user.slice" / "pids.max"))


def test_groups_of_the_first_version_have_a_folder_for_each_controller(
    proc: Path, tmp_path: Path
) -> None:
    (proc / "self" / "cgroup").write_text("3:cpu,cpuacct:/a\n8:pids:/box\n0::/\n")
    limit(tmp_path / "groups" / "pids" / "box", "64", 60)
    capacity, setting = task_capacity(proc, tmp_path / "groups")
    assert (capacity, setting) == (4, str(tmp_path / "groups" / "pids" / "box" / "pids.max"))


def test_a_limit_that_is_exceeded_leaves_no_capacity(proc: Path, tmp_path: Path) -> None:
    limit(tmp_path / "groups" / "user.slice", "10", 20)
    assert task_capacity(proc, tmp_path / "groups")[0] == 0


def test_inotify_matters_with_the_second_version_of_groups_only(proc: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    groups.mkdir()
    assert inotify_instances(proc, groups) is None
    (groups / "cgroup.controllers").touch()
    assert inotify_instances(proc, groups) == 128


def test_memory_is_what_programs_could_still_take(proc: Path) -> None:
    assert available_memory(proc / "meminfo") == 1000 * 1024
    assert available_memory(proc / "loadavg") == 0


def test_the_free_space_of_a_folder_to_come_is_that_of_the_nearest_above(tmp_path: Path) -> None:
    assert existing(tmp_path / "runs" / "deep") == tmp_path
