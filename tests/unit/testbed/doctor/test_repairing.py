"""The doctor's repairs."""

import os
import sys

import pytest

from testbed.doctor import Check, Repair, remedies
from testbed.doctor.remedies import NO_SUDO, carry_out, compare, plan, run_here

LOAD = Repair(("modprobe", "sch_netem"), "loads it")
START = Repair(("engine", "start"), "starts it")


def check(name: str, *repairs: Repair, status: str = "limited") -> Check:
    return Check(name, status, "found", "costs", "fix", repairs)  # type: ignore[arg-type]


def test_all_installations_become_one_and_come_first() -> None:
    qemu = remedies.install("qemu-user-static", "binfmt-support")
    steps = plan(
        [
            check("netem", LOAD),
            check("image", remedies.install("mmdebstrap"), START),
            check("arm64", qemu),
            check("arm/v7", qemu),
        ]
    )
    assert steps[0] == remedies.update_packages()
    assert steps[1].packages == ("mmdebstrap", "qemu-user-static", "binfmt-support")
    assert steps[2:] == [LOAD, START]


def test_a_command_is_given_once_and_not_tried_again() -> None:
    findings = [check("engine", START), check("image", START, LOAD)]
    assert plan(findings) == [START, LOAD]
    assert plan(findings, tried=[START]) == [LOAD]
    assert plan([check("well", status="ok")]) == []


def test_a_failed_repair_does_not_stop_the_others() -> None:
    started: list[Repair] = []
    done = carry_out([LOAD, START], lambda repair: "no" if repair is LOAD else "", started.append)
    assert started == [LOAD, START]
    assert [each.trouble for each in done] == ["no", ""]


def test_only_checks_with_repairs_are_compared() -> None:
    before = [check("netem", LOAD), check("memory"), check("engine", START)]
    after = [check("netem", LOAD), check("memory"), check("engine", status="ok")]
    netem, engine = compare(before, after)
    assert (netem.name, netem.repaired) == ("netem", False)
    assert (engine.name, engine.repaired) == ("engine", True)


def test_a_command_is_a_list_of_arguments_not_shell_text(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("$(false)", "a b", ";", "*")
    shown = Repair(
        (sys.executable, "-c", "import sys; print(sys.argv[1:])", *arguments), "", root=False
    )
    assert run_here(shown) == ""
    out, err = capfd.readouterr()
    assert out == "", "standard output is for the document"
    assert str(list(arguments)) in err


def test_errors_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_here(Repair(("false",), "", root=False)) == "exit code 1"
    assert "No such file" in run_here(Repair(("/no/such/program",), "", root=False))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_here(Repair(("true",), "")) == NO_SUDO


def test_a_command_gets_its_standard_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_here(Repair(("cat",), "", root=False, given="-1")) == ""
    assert capfd.readouterr().err == "-1"


def test_a_command_is_shown_as_one_would_type_it() -> None:
    handler = remedies.enable_handler("qemu-arm")
    assert handler.typed() == "echo 1 | sudo tee /proc/sys/fs/binfmt_misc/qemu-arm"
    assert LOAD.typed(as_root=True) == "modprobe sch_netem"
    assert Repair(("rm", "a b"), "", root=False).typed() == "rm 'a b'"
