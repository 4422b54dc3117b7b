"""The doctor's checks of a machine."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed import doctor
from testbed.backends.docker.platforms import Handler, Machine, Platform
from testbed.doctor import Check, Facts, Means, Repair, as_json, judge

GIB = 1 << 30
GOOD = Handler(enabled=True, fixed=True)
ARM = ("qemu-aarch64", "qemu-arm")
MEANS = Means(
    apt=True,
    systemd=True,
    dockerd=True,
    docker_host="",
    engine_script=None,
    modules=frozenset({"sch_netem", "sch_tbf", "tun"}),
    shell=4711,
)
X86 = Machine(
    own=Platform("amd64"),
    runs_32_bit=False,
    mounted=True,
    handlers=dict.fromkeys(ARM, GOOD),
    installed=frozenset(ARM),
)
WELL = Facts(
    python=(3, 13, 1),
    root=True,
    namespaces=(True, "as root"),
    refusing=None,
    netem=True,
    tbf=True,
    tun="",
    tun_forbidden=False,
    engine=(True, "Docker engine 28 answers"),
    image=(True, "the node image is there"),
    processor=X86,
    memory=16 * GIB,
    cores=4,
    captures=Path("/captures"),
    disk_free=100 * GIB,
    open_files=1 << 20,
    receive_buffer=212992,
    tasks=(30000, "kernel.pid_max"),
    inotify=8192,
    orphans=0,
    means=MEANS,
)
NO_ENGINE = replace(WELL, engine=(False, "none"), image=(False, "unknown while no engine answers"))


def finding(facts: Facts, name: str) -> Check:
    (check,) = [check for check in judge(facts) if check.name == name]
    return check


def commands(facts: Facts, name: str) -> list[tuple[str, ...]]:
    return [repair.argv for repair in finding(facts, name).repairs]


def test_a_machine_that_has_everything_gets_no_advice() -> None:
    for check in judge(WELL):
        assert (check.status, check.costs, check.fix, check.repairs) == ("ok", "", "", ()), check


REFUSED = {"namespaces": (False, "refused"), "refusing": ("user.max_user_namespaces", "10000")}


@pytest.mark.parametrize(
    ("change", "name", "status", "in_costs", "in_fix"),
    [
        ({"python": (3, 10, 2)}, "Python", "missing", "nothing works", "3.11"),
        (REFUSED, "network namespaces", "missing", "no lab", "sysctl -w user.max_user_namespaces"),
        ({"netem": False}, "netem", "limited", "relay", "modprobe sch_netem"),
        ({"tbf": False}, "tbf", "limited", "emulator: tbf", "modprobe sch_tbf"),
        ({"tun": "no /dev/net/tun"}, "relay", "limited", "emulator: relay", "modprobe tun"),
        ({"tun": "no", "netem": False}, "relay", "missing", "delay", "modprobe tun"),
        ({"tun": "no", "tun_forbidden": True}, "relay", "limited", "relay", "chmod 666"),
        ({"engine": (False, "none")}, "Docker engine", "limited", "netns", "systemctl start"),
        ({"root": False}, "Docker engine", "limited", "netns", "sudo"),
        ({"image": (False, "no way")}, "node image", "limited", "docker", "mmdebstrap"),
        ({"memory": 4 * GIB}, "memory", "limited", "about 40 nodes", "memory"),
        ({"memory": GIB}, "memory", "limited", "Spark", "memory"),
        ({"cores": 1}, "CPU cores", "limited", "one core", "two cores"),
        ({"disk_free": GIB}, "disk", "limited", "lost", "TESTBED_CAPTURES"),
        ({"disk_free": 1 << 20}, "disk", "missing", "lost", "TESTBED_CAPTURES"),
        ({"open_files": 1024}, "open files", "limited", "320 links", "prlimit --pid 4711"),
        ({"tasks": (1300, "kernel.pid_max")}, "processes", "limited", "100 cont", "kernel.pid_max"),
        ({"tasks": (1300, "/g/pids.max")}, "processes", "limited", "100 cont", "TasksMax"),
        ({"inotify": 128}, "inotify instances", "limited", "about 100", "max_user_instances"),
        ({"root": False}, "capture buffers", "limited", "counted", "rmem_max"),
        ({"orphans": 3}, "leftovers", "limited", "memory", "down --orphans"),
    ],
)
def test_each_missing_capability_is_named_with_its_cost_and_a_command(
    change: dict[str, object], name: str, status: str, in_costs: str, in_fix: str
) -> None:
    check = finding(replace(WELL, **change), name)  # type: ignore[arg-type]
    assert check.status == status
    assert in_costs in check.costs
    assert in_fix in check.fix
    assert check.found


def test_modules_that_this_kernel_lacks_are_not_offered_as_repairs() -> None:
    kernel = replace(MEANS, modules=frozenset())
    for change, name in (({"netem": False}, "netem"), ({"tbf": False}, "tbf")):
        check = finding(replace(WELL, means=kernel, **change), name)  # type: ignore[arg-type]
        assert check.repairs == ()
        assert "a kernel with" in check.fix


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ({"engine_script": Path("/src/scripts/engine")}, [("/src/scripts/engine", "start")]),
        ({}, [("systemctl", "start", "docker")]),
        ({"systemd": False}, []),
        ({"dockerd": False, "apt": False}, []),
        ({"docker_host": "unix:///mine"}, []),
    ],
)
def test_an_engine_is_started_as_this_machine_can(
    means: dict[str, object], expected: list[tuple[str, ...]]
) -> None:
    facts = replace(NO_ENGINE, means=replace(MEANS, **means))  # type: ignore[arg-type]
    for name in ("Docker engine", "node image"):
        assert commands(facts, name) == expected
        assert finding(facts, name).fix


def test_an_engine_that_is_missing_is_installed_first() -> None:
    facts = replace(NO_ENGINE, means=replace(MEANS, dockerd=False))
    install, start = finding(facts, "Docker engine").repairs
    assert install.packages == ("docker.io",)
    assert start.argv == ("systemctl", "start", "docker")


REGISTER = [("update-binfmts", "--enable", "qemu-aarch64")]
PLACE = "/proc/sys/fs/binfmt_misc"


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (replace(X86, handlers={}), REGISTER),
        (
            replace(X86, handlers={}, mounted=False),
            [("mount", "-t", "binfmt_misc", "binfmt_misc", PLACE), *REGISTER],
        ),
        (
            replace(X86, handlers={"qemu-aarch64": Handler(enabled=False, fixed=True)}),
            [("tee", f"{PLACE}/qemu-aarch64")],
        ),
        (
            replace(X86, handlers={"qemu-aarch64": Handler(enabled=True, fixed=False)}),
            [("tee", f"{PLACE}/qemu-aarch64"), *REGISTER],
        ),
    ],
)
def test_programs_of_boards_get_a_handler_that_works_in_containers(
    processor: Machine, expected: list[tuple[str, ...]]
) -> None:
    facts = replace(WELL, processor=processor)
    assert finding(facts, "linux/arm64 programs").status == "limited"
    assert commands(facts, "linux/arm64 programs") == expected


def test_qemu_is_installed_where_it_is_missing_and_can_be() -> None:
    bare = replace(X86, handlers={}, installed=frozenset())
    first, *_ = finding(replace(WELL, processor=bare), "linux/arm/v7 programs").repairs
    assert first.packages == ("qemu-user-static", "binfmt-support")
    without_apt = replace(WELL, processor=bare, means=replace(MEANS, apt=False))
    check = finding(without_apt, "linux/arm/v7 programs")
    assert check.repairs == ()
    assert "qemu-user-static" in check.fix


@given(
    memory=st.integers(0, 1 << 45),
    disk=st.integers(0, 1 << 50),
    files=st.integers(0, 1 << 24),
    cores=st.integers(1, 512),
    buffer=st.integers(0, 1 << 32),
    root=st.booleans(),
    engine=st.booleans(),
    tun=st.sampled_from(["", "refused"]),
    tasks=st.tuples(st.integers(0, 1 << 22), st.sampled_from(["kernel.pid_max", "/g/pids.max"])),
    inotify=st.none() | st.integers(0, 1 << 20),
    orphans=st.integers(0, 9),
    apt=st.booleans(),
    modules=st.frozensets(st.sampled_from(["sch_netem", "sch_tbf", "tun"])),
)
def test_every_failed_check_names_its_cost_and_its_fix(
    memory: int,
    disk: int,
    files: int,
    cores: int,
    buffer: int,
    root: bool,
    engine: bool,
    tun: str,
    tasks: tuple[int, str],
    inotify: int | None,
    orphans: int,
    apt: bool,
    modules: frozenset[str],
) -> None:
    facts = replace(
        WELL,
        memory=memory,
        disk_free=disk,
        open_files=files,
        cores=cores,
        receive_buffer=buffer,
        root=root,
        engine=(engine, "said"),
        image=(engine, "said"),
        tun=tun,
        tasks=tasks,
        inotify=inotify,
        orphans=orphans,
        means=replace(MEANS, apt=apt, modules=modules),
    )
    for check in judge(facts):
        assert (check.status == "ok") == (not check.costs) == (not check.fix)
        assert check.status != "ok" or not check.repairs
        for repair in check.repairs:
            assert all(isinstance(argument, str) and argument for argument in repair.argv)
            assert repair.changes
            assert repair.typed() in check.fix


def test_the_findings_are_a_json_document() -> None:
    repair = Repair(("modprobe", "sch_tbf"), "loads it")
    check = Check("tbf", "limited", "no", "rates", "modprobe", (repair,))
    document = json.loads(json.dumps(as_json([check])))
    assert document == {
        "checks": [
            {
                "name": "tbf",
                "status": "limited",
                "found": "no",
                "costs": "rates",
                "fix": "modprobe",
                "repairs": [
                    {
                        "argv": ["modprobe", "sch_tbf"],
                        "changes": "loads it",
                        "root": True,
                        "given": "",
                        "packages": [],
                    }
                ],
            }
        ]
    }


def test_this_machine_can_be_examined() -> None:
    java = Check("java", "ok", "Java 25")
    checks = doctor.examine([java])
    assert checks[-1] is java
    assert checks[0] == Check("Python", "ok", checks[0].found)
    assert len({check.name for check in checks}) == len(checks)
