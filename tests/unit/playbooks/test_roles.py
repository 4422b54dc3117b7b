"""The roles as files: the paths and modules that they use, and the findings of ansible-lint."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
ROLES = PLAYBOOKS / "roles"
LAB = "valley"
# The layout of a board: the same as in testbed's own code and docs.
DESIGN = {
    "testbed_program_dir": "/opt/testbed/valley",
    "testbed_config_dir": "/etc/testbed/valley",
    "testbed_data_dir": "/var/lib/testbed/valley",
    "testbed_runtime": "testbed-valley",
    "testbed_node_unit": "testbed-node-valley.service",
    "testbed_links_unit": "testbed-links-valley.service",
    "testbed_capture_unit": "testbed-capture-valley.service",
    "testbed_user": "testbed",
    "testbed_memory_max": "256M",
    "testbed_cpu_quota": "100%",
    "testbed_chrony_source": "/etc/chrony/sources.d/testbed.sources",
}
GIVEN = {"testbed_lab": LAB, "testbed_node": "river", "testbed_interface": "eth0"}
# Of the keys of a task these are not the module that it calls.
NO_MODULES = {
    *("name", "when", "loop", "loop_control", "register", "vars", "notify", "environment"),
    *("changed_when", "failed_when", "check_mode", "no_log", "diff"),
}


def defaults() -> dict[str, Any]:
    """The layout's, for a lab called valley; those that follow from others in place."""
    values = {**yaml.safe_load((ROLES / "layout/defaults/main.yml").read_text()), **GIVEN}
    values["testbed_ssh_port"] = 22
    for _ in range(3):
        for name, value in values.items():
            if isinstance(value, str) and "ansible_" not in value:
                values[name] = jinja2.Template(value).render(values)
    return values


def unit(role: str) -> dict[str, list[str]]:
    """The settings of a role's unit file."""
    template = (ROLES / role / "templates" / f"{role}.service.j2").read_text()
    text = jinja2.Template(template).render(defaults(), ansible_managed="by Ansible")
    settings: dict[str, list[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        name, is_one, value = line.partition("=")
        if is_one and not line.startswith("#"):
            settings.setdefault(name, []).append(" ".join(value.split()))
    return settings


def tasks() -> Iterator[tuple[Path, dict[str, Any]]]:
    for folder in ("tasks", "handlers"):
        for path in sorted(ROLES.glob(f"*/{folder}/*.yml")):
            for task in yaml.safe_load(path.read_text()):
                yield from _within(path, task)


def _within(path: Path, task: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A block is its tasks."""
    if "block" not in task:
        yield path, task
    for inner in (*task.get("block", ()), *task.get("rescue", ())):
        yield from _within(path, inner)


@pytest.mark.parametrize("name", sorted(DESIGN))
def test_defaults_are_the_design(name: str) -> None:
    assert defaults()[name] == DESIGN[name]


def test_each_variable_that_may_be_given_is_described() -> None:
    described = yaml.safe_load((ROLES / "layout/meta/argument_specs.yml").read_text())
    options = described["argument_specs"]["main"]["options"]
    own = yaml.safe_load((ROLES / "layout/defaults/main.yml").read_text())
    given = list(own)[: list(own).index("testbed_login")]
    assert set(given) - set(options) <= {"testbed_interface"}, "it is read from the board"


def test_boards_need_no_module_but_ansibles_own() -> None:
    for path, task in tasks():
        (module,) = set(task) - NO_MODULES
        assert module.startswith("ansible.builtin."), f"{path}: {task['name']}"


def test_tasks_that_handle_the_configuration_hide_its_secret() -> None:
    handled = [
        task
        for _, task in tasks()
        if "node.json" in str(task)
        or "testbed_node_there" in str(task.get("ansible.builtin.set_fact"))
    ]
    assert len(handled) == 3
    assert all(task.get("no_log") is True for task in handled)


def test_the_services_run_what_the_design_says() -> None:
    python, programs, config = "/usr/bin/python3 -IS", "/opt/testbed/valley", "/etc/testbed/valley"
    data = "/var/lib/testbed/valley"
    assert unit("node")["ExecStart"] == [f"{python} {programs}/nodes.pyz {config}/node.json"]
    board = f"{python} {programs}/nodes.pyz board"
    assert unit("links")["ExecStart"] == [f"{board} shape {config}/links.json"]
    assert unit("links")["ExecStopPost"] == [f"{board} unshape {config}/links.json"]
    assert unit("capture")["ExecStart"] == [
        f"{python} {programs}/capture.pyz --interface eth0 --file {data}/capture.pcap "
        f"--statistics {data}/capture.json --snaplen 65535 --without-port 22"
    ]


@pytest.mark.parametrize(
    ("role", "rights"), [("node", ""), ("links", "CAP_NET_ADMIN"), ("capture", "CAP_NET_RAW")]
)
def test_services_have_the_rights_they_need_and_no_more(role: str, rights: str) -> None:
    settings = unit(role)
    assert settings["CapabilityBoundingSet"] == [rights]
    assert settings["ProtectSystem"] == ["strict"]
    assert "WantedBy" not in settings, "none begins at boot"
    for name in (
        "NoNewPrivileges",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectHome",
        "LockPersonality",
    ):
        assert settings[name] == ["yes"]


@pytest.mark.ansible
def test_ansible_lint_finds_no_problems(tmp_path: Path) -> None:
    own = Path(sys.executable).parent
    done = subprocess.run(
        [str(own / "ansible-lint"), "--nocolor", "--strict"],
        cwd=PLAYBOOKS,
        env={**os.environ, "PATH": f"{own}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
