"""The platforms whose programs run here, and the commands that help otherwise."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.docker import platforms
from testbed.backends.docker.platforms import (
    Handler,
    Machine,
    Platform,
    inspect_machine,
    judge,
    platform_verdicts,
    read_handler,
    refuse_foreign,
)
from testbed.errors import InputError, MissingCapability
from testbed.topology.schema.sections import PLATFORMS

ARM64, ARMV7, AMD64 = Platform("arm64"), Platform("arm", "v7"), Platform("amd64")
READY = Handler(enabled=True, fixed=True)
X86 = Machine(
    own=AMD64,
    runs_32_bit=False,
    mounted=True,
    handlers={"qemu-aarch64": READY, "qemu-arm": READY},
    installed=frozenset(["qemu-aarch64", "qemu-arm"]),
)
# As Debian's binfmt-support registers it.
REGISTERED = """\
enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: PF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
"""


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_platform_of_a_topology_is_read_and_written_alike(name: str) -> None:
    assert str(Platform.parse(name)) == name


@pytest.mark.parametrize(
    ("text", "means"),
    [("linux/arm", "linux/arm/v7"), ("linux/arm64/v8", "linux/arm64"), ("linux/386", "linux/386")],
)
def test_a_left_out_variant_is_the_usual_one(text: str, means: str) -> None:
    assert str(Platform.parse(text)) == means


@given(st.text(st.sampled_from("linuxarm64v78/- "), max_size=20))
def test_any_text_is_a_platform_or_an_error_that_names_the_known_platforms(text: str) -> None:
    try:
        understood, hint = str(Platform.parse(text)), ""
    except InputError as error:
        understood, hint = "", error.hint
    assert "linux/arm64" in hint or str(Platform.parse(understood)) == understood


def test_debian_and_qemu_have_names_of_their_own() -> None:
    assert [p.debian for p in (AMD64, ARM64, ARMV7)] == ["amd64", "arm64", "armhf"]
    assert [p.handler for p in (AMD64, ARM64, ARMV7)] == ["qemu-x86_64", "qemu-aarch64", "qemu-arm"]


def test_a_handler_is_enabled_and_opened_beforehand() -> None:
    assert read_handler(REGISTERED) == READY
    assert not read_handler(REGISTERED.replace("PF", "OC")).fixed
    assert not read_handler(REGISTERED.replace("enabled", "disabled")).enabled
    assert read_handler("") == Handler(enabled=False, fixed=False)


def test_a_machine_runs_its_own_programs_natively_and_foreign_ones_through_qemu() -> None:
    assert judge(AMD64, X86).how == "natively"
    verdict = judge(ARM64, X86)
    assert (verdict.runs, verdict.emulated, verdict.how) == (True, True, "through qemu")


@pytest.mark.parametrize("runs_32_bit", [True, False])
def test_an_arm64_may_run_arm_v7_natively(runs_32_bit: bool) -> None:
    machine = Machine(ARM64, runs_32_bit, True, {}, frozenset())
    assert judge(ARMV7, machine).runs == runs_32_bit
    assert not judge(AMD64, machine).runs


@pytest.mark.parametrize(
    ("machine", "reason", "fix"),
    [
        (
            replace(X86, handlers={}, installed=frozenset()),
            "no handler",
            "sudo apt-get install qemu-user-static binfmt-support",
        ),
        (replace(X86, handlers={}), "no handler", "sudo update-binfmts --enable qemu-aarch64"),
        (
            replace(X86, handlers={}, mounted=False),
            "no handler",
            "sudo mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc"
            " && sudo update-binfmts --enable qemu-aarch64",
        ),
        (
            replace(X86, handlers={"qemu-aarch64": Handler(enabled=False, fixed=True)}),
            "disabled",
            "echo 1 | sudo tee /proc/sys/fs/binfmt_misc/qemu-aarch64",
        ),
        (
            replace(X86, handlers={"qemu-aarch64": Handler(enabled=True, fixed=False)}),
            "inside containers",
            "sudo apt-get install qemu-user-static binfmt-support",
        ),
    ],
)
def test_a_missing_prerequisite_is_reported_with_the_command_that_helps(
    machine: Machine, reason: str, fix: str
) -> None:
    verdict = judge(ARM64, machine)
    assert not verdict.runs
    assert reason in verdict.how
    assert verdict.fix == fix


@given(
    st.sampled_from([AMD64, ARM64, ARMV7]),
    st.builds(
        Machine,
        st.sampled_from([AMD64, ARM64, ARMV7]),
        st.booleans(),
        st.booleans(),
        st.dictionaries(
            st.sampled_from(["qemu-aarch64", "qemu-arm", "qemu-x86_64"]),
            st.builds(Handler, st.booleans(), st.booleans()),
        ),
        st.frozensets(st.sampled_from(["qemu-aarch64", "qemu-arm"])),
    ),
)
def test_a_platform_runs_or_the_verdict_has_a_command(wanted: Platform, machine: Machine) -> None:
    verdict = judge(wanted, machine)
    assert verdict.how
    assert verdict.runs != bool(verdict.fix)
    assert verdict.runs or not verdict.emulated


@pytest.fixture
def binfmt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of the x86 kind whose handlers are the files in this folder."""
    monkeypatch.setattr(platforms, "BINFMT", tmp_path)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return tmp_path


def test_handlers_are_read_from_the_kernel(binfmt: Path) -> None:
    assert not inspect_machine().mounted
    (binfmt / "status").write_text("enabled\n")
    (binfmt / "qemu-aarch64").write_text(REGISTERED)
    assert inspect_machine().mounted
    assert inspect_machine().handlers == {"qemu-aarch64": READY}
    assert {name: verdict.runs for name, verdict in platform_verdicts().items()} == {
        "linux/amd64": True,
        "linux/arm64": True,
        "linux/arm/v7": False,
    }


def test_nodes_that_cannot_run_are_named_with_their_platform_and_what_helps(binfmt: Path) -> None:
    (binfmt / "status").write_text("enabled\n")
    (binfmt / "qemu-aarch64").write_text(REGISTERED)
    native = {"broker": AMD64, "gauge": ARM64}
    refuse_foreign(native)
    foreign = {f"sensors-{n}": ARMV7 for n in range(7)}
    with pytest.raises(MissingCapability) as refused:
        refuse_foreign({**native, **foreign})
    assert "linux/arm/v7" in refused.value.message
    assert "sensors-0, sensors-1" in refused.value.message
    assert "2 more" in refused.value.message
    assert "broker" not in refused.value.message
    assert "qemu-arm" in refused.value.hint or "apt-get" in refused.value.hint
    assert "--backend netns" in refused.value.hint
