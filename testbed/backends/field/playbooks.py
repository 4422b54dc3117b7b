"""Reads inventories and runs playbooks with ansible-runner, and collects its events by host."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ansible_runner

import testbed
from testbed.errors import InputError, MissingCapability, TestbedError
from testbed.jsonfiles import write_json

FOLDER = Path(testbed.__file__).resolve().parents[1] / "playbooks"
FORKS = 20
_ENDED_BADLY = {"runner_on_failed": "failed", "runner_on_unreachable": "unreachable"}

Progress = Callable[[str, str], None]  # host, the finished task


@dataclass(slots=True)
class Outcome:
    """The outcome of a playbook, by host."""

    done: list[str] = field(default_factory=list)
    changed: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # host -> reason
    unreachable: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # from `set_fact`

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons of failures by host."""
        gone = {host: f"unreachable: {why}" for host, why in self.unreachable.items()}
        return {**self.failed, **gone}


def read_hosts(inventory: Path) -> dict[str, dict[str, Any]]:
    """The hosts of the group `boards` (of all, if there is none) with their variables, in the inventory's order."""
    if not inventory.exists():
        raise InputError(
            f"there is no inventory {inventory}", "`testbed inventory FILE` writes one"
        )
    with _commands_found(), tempfile.TemporaryDirectory(prefix="testbed-ansible-") as folder:
        listing, errors = ansible_runner.get_inventory(
            "list",
            [str(inventory.resolve())],
            response_format="json",
            private_data_dir=folder,
            quiet=True,
            envvars=_environment(),
            settings={"suppress_env_files": True},
        )
    variables = listing.get("_meta", {}).get("hostvars", {}) if isinstance(listing, dict) else {}
    names = _members(listing, "boards") or _members(listing, "all") if variables else []
    if not names:
        raise InputError(
            f"{inventory} names no hosts{': ' + _last_line(errors) if errors.strip() else ''}",
            "it is an Ansible inventory with a group `boards`; `testbed inventory FILE` writes one",
        )
    return {name: dict(variables.get(name, {})) for name in names}


def _members(listing: Mapping[str, Any], group: str) -> list[str]:
    entry = listing.get(group, {})
    deeper = [name for child in entry.get("children", ()) for name in _members(listing, child)]
    return [*dict.fromkeys([*entry.get("hosts", ()), *deeper])]


def play(
    playbook: str,
    inventories: Sequence[Path],
    hosts: Sequence[str],
    variables: Mapping[str, Any],
    artifacts: Path,
    progress: Progress,
    *,
    check: bool = False,
) -> Outcome:
    """Run one of our playbooks on these hosts. The outcome lists hosts that failed; the others go on."""
    path = FOLDER / playbook
    if not path.exists():
        raise MissingCapability(
            f"there is no playbook {path}", "run testbed from its own checkout (pip install -e .)"
        )
    outcome = Outcome()
    artifacts.mkdir(parents=True, exist_ok=True)
    number = 1 + sum(1 for each in artifacts.iterdir() if each.name.startswith(path.stem))
    with _commands_found(), tempfile.TemporaryDirectory(prefix="testbed-ansible-") as folder:
        extra = Path(folder) / "extra.json"
        write_json(extra, dict(variables))
        arguments = f"--extra-vars @{extra} --forks {FORKS}" + (" --check" if check else "")
        ident = f"{path.stem}-{number}"
        try:
            with _signals_deferred() as ended:
                runner = ansible_runner.run(
                    private_data_dir=folder,
                    playbook=str(path),
                    inventory=[str(each) for each in inventories],
                    limit=",".join(hosts),
                    cmdline=arguments,
                    envvars=_environment(),
                    settings={"suppress_env_files": True},
                    artifact_dir=str(artifacts),
                    ident=ident,
                    event_handler=lambda event: _note(event, outcome, progress),
                    cancel_callback=lambda: bool(ended),
                    quiet=True,
                )
        finally:
            # It holds the user's whole environment, and users share run folders.
            (artifacts / ident / "command").unlink(missing_ok=True)
    if runner.status not in ("successful", "failed"):
        raise TestbedError(
            f"{playbook} did not run: {runner.status}", f"see {artifacts}/{path.stem}-{number}"
        )
    concerned = {*outcome.failed, *outcome.unreachable, *outcome.done}
    for host in hosts:
        if host not in concerned:
            outcome.failed[host] = f"{playbook} did not reach it"
    return outcome


def _note(event: Mapping[str, Any], outcome: Outcome, progress: Progress) -> bool:
    """Add one event of ansible to the outcome; return True, so that the runner also saves it."""
    data = event.get("event_data", {})
    kind, host = event.get("event"), data.get("host")
    if kind == "runner_on_ok" and host:
        progress(host, str(data.get("task", "")))
        facts = (data.get("res") or {}).get("ansible_facts") or {}
        own = {name: value for name, value in facts.items() if name.startswith("testbed_")}
        outcome.facts.setdefault(host, {}).update(own)
    elif kind in _ENDED_BADLY and host and not data.get("ignore_errors"):
        why = _reason(data)
        (outcome.failed if kind == "runner_on_failed" else outcome.unreachable)[host] = why
    elif kind == "playbook_on_stats":
        bad = {*data.get("failures", {}), *data.get("dark", {})}
        for host in [name for name in outcome.failed if name not in bad]:
            del outcome.failed[host]  # it failed at first, and was repaired
        outcome.done += [name for name in data.get("processed", {}) if name not in bad]
        outcome.changed.update(data.get("changed", {}))
    return True


def _reason(data: Mapping[str, Any]) -> str:
    result = data.get("res") or {}
    words = result.get("msg") or result.get("stderr") or "no reason given"
    task = data.get("task") or "connecting"
    return f"{task}: {_last_line(str(words))}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1][-300:] if lines else ""


@contextmanager
def _signals_deferred() -> Iterator[list[int]]:
    """Defer SIGINT and SIGTERM until the playbook has ended, then raise them; the runner would swallow them."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


@contextmanager
def _commands_found() -> Iterator[None]:
    """Add the folder of this Python to PATH: ansible's commands are there, and the runner searches only PATH."""
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        if shutil.which("ansible-playbook") is None:
            raise MissingCapability(
                "ansible is not installed", "pip install ansible-core, or `make test` once"
            )
        yield
    finally:
        os.environ["PATH"] = before


def _environment() -> dict[str, str]:
    """Environment of ansible; it always checks host keys."""
    return {
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_PYTHON_INTERPRETER": "auto_silent",
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_PIPELINING": "True",
    }
