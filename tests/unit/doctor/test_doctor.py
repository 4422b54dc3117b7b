"""What the doctor makes of a machine."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed import doctor
from testbed.doctor import Check, Facts, as_json, judge

GIB = 1 << 30

WELL = Facts(
    python=(3, 13, 1),
    root=True,
    namespaces=(True, "as root"),
    netem=True,
    tbf=True,
    tun="",
    engine=(True, "Docker engine 28 answers"),
    image=(True, "the node image is there"),
    arm=(True, "through qemu"),
    memory=16 * GIB,
    cores=4,
    captures=Path("/captures"),
    disk_free=100 * GIB,
    open_files=1 << 20,
    receive_buffer=212992,
)


def finding(facts: Facts, name: str) -> Check:
    (check,) = [check for check in judge(facts) if check.name == name]
    return check


def test_a_machine_that_has_everything_is_told_nothing_else() -> None:
    for check in judge(WELL):
        assert (check.status, check.costs, check.fix) == ("ok", "", ""), check


@pytest.mark.parametrize(
    ("change", "name", "status", "in_costs", "in_fix"),
    [
        ({"python": (3, 10, 2)}, "Python", "missing", "nothing works", "3.11"),
        ({"namespaces": (False, "refused")}, "network namespaces", "missing", "no lab", "sysctl"),
        ({"netem": False}, "netem", "limited", "relay", "modprobe sch_netem"),
        ({"tbf": False}, "tbf", "limited", "emulator: tbf", "modprobe sch_tbf"),
        ({"tun": "no /dev/net/tun"}, "relay", "limited", "emulator: relay", "modprobe tun"),
        ({"tun": "no", "netem": False}, "relay", "missing", "delay", "modprobe tun"),
        ({"engine": (False, "none")}, "Docker engine", "limited", "netns", "make engine"),
        ({"root": False}, "Docker engine", "limited", "netns", "sudo"),
        ({"image": (False, "no way")}, "node image", "limited", "docker", "mmdebstrap"),
        ({"arm": (False, "none")}, "arm64 programs", "limited", "Raspberry", "qemu-user-static"),
        ({"memory": 4 * GIB}, "memory", "limited", "about 40 nodes", "memory"),
        ({"memory": GIB}, "memory", "limited", "Spark", "memory"),
        ({"cores": 1}, "CPU cores", "limited", "one core", "two cores"),
        ({"disk_free": GIB}, "disk", "limited", "lost", "TESTBED_CAPTURES"),
        ({"disk_free": 1 << 20}, "disk", "missing", "lost", "TESTBED_CAPTURES"),
        ({"open_files": 1024}, "open files", "limited", "320 links", "prlimit"),
        ({"root": False}, "capture buffers", "limited", "counted", "rmem_max"),
    ],
)
def test_each_lack_is_named_with_its_cost_and_a_command(
    change: dict[str, object], name: str, status: str, in_costs: str, in_fix: str
) -> None:
    check = finding(replace(WELL, **change), name)  # type: ignore[arg-type]
    assert check.status == status
    assert in_costs in check.costs
    assert in_fix in check.fix
    assert check.found


def test_without_an_engine_the_image_waits_for_it() -> None:
    facts = replace(WELL, engine=(False, "none"), image=(False, "unknown while no engine answers"))
    assert finding(facts, "node image").fix == "make engine"


@given(
    memory=st.integers(0, 1 << 45),
    disk=st.integers(0, 1 << 50),
    files=st.integers(0, 1 << 24),
    cores=st.integers(1, 512),
    buffer=st.integers(0, 1 << 32),
    root=st.booleans(),
)
def test_whoever_lacks_something_reads_what_it_costs_and_what_helps(
    memory: int, disk: int, files: int, cores: int, buffer: int, root: bool
) -> None:
    facts = replace(
        WELL,
        memory=memory,
        disk_free=disk,
        open_files=files,
        cores=cores,
        receive_buffer=buffer,
        root=root,
    )
    for check in judge(facts):
        assert (check.status == "ok") == (not check.costs) == (not check.fix)


def test_the_findings_are_a_json_document() -> None:
    document = json.loads(json.dumps(as_json([Check("tbf", "limited", "no", "rates", "modprobe")])))
    assert document == {
        "checks": [
            {
                "name": "tbf",
                "status": "limited",
                "found": "no",
                "costs": "rates",
                "fix": "modprobe",
            }
        ]
    }


def test_this_machine_can_be_examined() -> None:
    java = Check("java", "ok", "Java 25")
    checks = doctor.examine(java)
    assert checks[-1] is java
    assert checks[0] == Check("Python", "ok", checks[0].found)
    assert len({check.name for check in checks}) == len(checks)


def test_arm_programs_run_on_arm_or_through_an_enabled_handler(tmp_path: Path) -> None:
    handler = tmp_path / "qemu-aarch64"
    assert doctor._probe_arm("aarch64", handler)[0]
    assert not doctor._probe_arm("x86_64", handler)[0]
    handler.write_text("disabled\n")
    assert not doctor._probe_arm("x86_64", handler)[0]
    handler.write_text("enabled\ninterpreter /usr/bin/qemu-aarch64-static\n")
    assert doctor._probe_arm("x86_64", handler)[0]


def test_the_free_space_of_a_folder_to_come_is_that_of_the_nearest_above(tmp_path: Path) -> None:
    assert doctor._existing(tmp_path / "runs" / "deep") == tmp_path
