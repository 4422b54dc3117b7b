"""The playbooks, run by Ansible over SSH on boards that boot systemd: deploy, check, collect, clean."""

import hashlib
import ipaddress
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_runner
import pytest

from support.boards.board_bench import eventually
from support.boards.stand_in_boards import StandIn, StandIns, stand_in_boards
from support.boards.time_server import time_server
from testbed.backends.common import zipapp
from testbed.backends.field import capture_zipapp

pytestmark = [
    pytest.mark.ansible,
    pytest.mark.docker,
    pytest.mark.root,
    pytest.mark.timeout(900),  # the boards' image may have to be built first
]

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
LAB, RUN = "valley", "valley-1"
SECRET = "0123456789abcdefsecret"
NODES = {"river": "broker", "hill": "office"}  # board: node
NODE_UNIT = f"testbed-node-{LAB}.service"
CAPTURE_UNIT = f"testbed-capture-{LAB}.service"
LINKS_UNIT = f"testbed-links-{LAB}.service"
PORT = 9000
PATIENCE_S = 60.0
AHEAD_S = 2.0  # the time server is ahead of the boards
ROUTE = "10.77.0.0/16"
DATA = f"/var/lib/testbed/{LAB}"


@dataclass(frozen=True)
class Played:
    """The result of a playbook, and everything that Ansible wrote about it."""

    stats: Mapping[str, Mapping[str, int]]
    facts: Mapping[str, Mapping[str, Any]]  # by host
    output: str

    def count(self, what: str) -> int:
        return sum(self.stats.get(what, {}).values())


def play(name: str, inventory: Mapping[str, Any], extra: Mapping[str, Any], *flags: str) -> Played:
    """Run the playbook as testbed does."""
    facts: dict[str, dict[str, Any]] = {}

    def note(event: dict[str, Any]) -> bool:
        about = event.get("event_data", {})
        if event["event"] == "runner_on_ok":
            found = (about.get("res") or {}).get("ansible_facts") or {}
            facts.setdefault(about["host"], {}).update(found)
        return True

    with tempfile.TemporaryDirectory(prefix="playbooks-") as folder:
        runner = ansible_runner.run(
            private_data_dir=folder,
            playbook=str(PLAYBOOKS / f"{name}.yml"),
            inventory=dict(inventory),
            extravars=dict(extra),
            envvars={"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg")},
            cmdline=" ".join(flags) or None,
            event_handler=note,
            quiet=True,
        )
        written = [path for path in (Path(folder) / "artifacts").rglob("*") if path.is_file()]
        output = "\n".join(path.read_text() for path in written)
        assert runner.status in ("successful", "failed"), output
        return Played(runner.stats, facts, output)


def node_json(boards: StandIns, board: str) -> dict[str, Any]:
    """A broker, and a subscriber that connects to it."""
    broker = board == "river"
    place = {"name": "broker", "number": 1, "host": boards["river"].address, "port": PORT}
    return {
        "lab": LAB,
        "run": RUN,
        "name": NODES[board],
        "number": 1 if broker else 2,
        "kind": "broker" if broker else "subscriber",
        "control": f"/run/testbed-{LAB}/ctl",
        "log": f"{DATA}/node.jsonl",
        "seed": 1,
        "overlay": {"method": "star", "parameters": {}},
        "delivery": {"method": "fifo", "parameters": {}},
        "deliveries": {},
        "listen": {"host": boards["river"].address, "port": PORT} if broker else None,
        "brokers": [] if broker else [place],
        "seeds": [],
        "topics": [] if broker else ["alerts"],
        "dimensions": 0,
        "secret": SECRET,
        "journal": None,
    }


SHAPE = {
    "rate_bps": 1e6,
    "delay_s": 0.0,
    "jitter_s": 0.0,
    "loss": 0.0,
    "queue_bytes": 20_000,
    "burst_bytes": 1_600,
    "cut": False,
}


@dataclass(frozen=True)
class Setting:
    """A lab of two boards, as testbed passes it to the playbooks."""

    boards: StandIns
    folder: Path
    extra: Mapping[str, Any]

    def inventory(self, **changed: Any) -> dict[str, Any]:
        return self.boards.inventory(
            {
                board: {
                    "testbed_node": node,
                    "testbed_interface": "eth0",
                    "testbed_routes": [{"to": ROUTE, "via": self.boards.gateway}],
                    **changed,
                }
                for board, node in NODES.items()
            }
        )

    def play(self, name: str, *flags: str, **changed: Any) -> Played:
        return play(name, self.inventory(**changed), self.extra, *flags)


def write_files(folder: Path, boards: StandIns) -> None:
    """Write the files that the playbooks push."""
    zipapp.build(folder / "nodes.pyz")
    capture_zipapp.build(folder / "capture.pyz")
    peers = [board.address for board in boards.boards.values()]
    for board in NODES:
        own = folder / "hosts" / board
        own.mkdir(parents=True)
        (own / "node.json").write_text(json.dumps(node_json(boards, board)))
        links = {"interface": "eth0", "peers": peers, "up": SHAPE, "down": SHAPE}
        (own / "links.json").write_text(json.dumps(links))


def write_deb(folder: Path, architecture: str) -> None:
    """Write a Debian package with one file."""
    with tempfile.TemporaryDirectory() as root:
        control = Path(root, "DEBIAN", "control")
        control.parent.mkdir()
        control.write_text(
            f"Package: pushed-{architecture}\nVersion: 1.0\nArchitecture: {architecture}\n"
            "Maintainer: nobody <nobody@example.org>\nDescription: pushed to a board\n"
        )
        target = folder / f"pushed-{architecture}_1.0_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--build", root, str(target)], check=True, capture_output=True)


@pytest.fixture(scope="module", autouse=True)
def ansible_is_found() -> Iterator[None]:
    """Ansible's commands are beside this Python, which need not be on the PATH."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        yield


@pytest.fixture(scope="module")
def boards() -> Iterator[StandIns]:
    with stand_in_boards(list(NODES)) as made:
        yield made


@pytest.fixture(scope="module")
def setting(boards: StandIns, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder, boards)
    debs = folder / "debs"
    debs.mkdir()
    for architecture in ("all", "riscv64"):
        write_deb(debs, architecture)
    extra = {
        "testbed_lab": LAB,
        "testbed_run": RUN,
        "testbed_files": str(folder),
        "testbed_time_server": boards.gateway,
        "testbed_debs": str(debs),
        "testbed_memory_max": "200M",
    }
    with time_server(boards.gateway, AHEAD_S):
        yield Setting(boards, folder, extra)


def everything(board: StandIn) -> set[str]:
    """Names, permissions and times of all files that a deployment could change."""
    folders = ["/etc", "/opt", "/usr", "/var/lib", "/home"]
    moving = "/home/pi( |/.ansible)|/var/lib/(chrony|systemd|private)"
    found = board.output("find", *folders, "-printf", "%p %m %u %g %T@\n").splitlines()
    return {line for line in found if not re.match(moving, line)}


@pytest.fixture(scope="module")
def checked(setting: Setting) -> tuple[Played, dict[str, set[str]]]:
    """A deployment in check mode, and the differences that it made on each board."""
    before = {name: everything(board) for name, board in setting.boards.boards.items()}
    played = setting.play("deploy", "--check", "--diff")
    return played, {
        name: before[name] ^ everything(board) for name, board in setting.boards.boards.items()
    }


@pytest.fixture(scope="module")
def deployed(setting: Setting, checked: object) -> Played:
    return setting.play("deploy", "--diff")


@pytest.fixture(scope="module")
def collected(setting: Setting, deployed: object) -> Played:
    return setting.play("collect")


@pytest.fixture(scope="module")
def cleaned(setting: Setting, collected: object) -> Played:
    """Clean a deployment that was partly removed by hand."""
    hill = setting.boards["hill"]
    hill.output("rm", "-r", f"/etc/testbed/{LAB}", f"/etc/systemd/system/{NODE_UNIT}")
    hill.output("systemctl", "daemon-reload")
    return setting.play("clean")


def main_pid(board: StandIn, unit: str) -> str:
    """Its number; systemd always prints one, but a busy Docker engine may lose the output of so short a command."""
    limit = time.monotonic() + PATIENCE_S
    while not (found := board.output("systemctl", "show", "--property=MainPID", "--value", unit)):
        assert time.monotonic() < limit
    return found


def state(board: StandIn, unit: str) -> str:
    return board.output("systemctl", "show", "--property=ActiveState", "--value", unit)


def process(board: StandIn, unit: str) -> dict[str, str]:
    """The kernel's data on a unit's process; the output of a command in a container may be empty on a busy machine."""
    about: dict[str, str] = {}

    def is_known() -> bool:
        lines = board.output("cat", f"/proc/{main_pid(board, unit)}/status").splitlines()
        about.update(
            (name, value.strip()) for name, _, value in (one.partition(":") for one in lines)
        )
        return "Uid" in about

    eventually(is_known)
    return about


def ask(boards: StandIns, board: str, request: dict[str, Any]) -> Any:
    """Ask a node over its control socket, as the login user."""
    program = (
        "import socket,sys;s=socket.socket(socket.AF_UNIX);"
        f"s.connect('/run/testbed-{LAB}/ctl');"
        f"s.sendall(b'''{json.dumps(request)}\\n''');print(s.makefile().readline())"
    )
    asked = boards.ssh(board, "python3", "-c", shlex.quote(program))
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


def test_in_check_mode_a_fresh_board_stays_as_it_was(
    checked: tuple[Played, dict[str, set[str]]],
) -> None:
    played, other = checked
    assert played.count("failures") == 0, played.output
    assert played.count("changed") > 0, "check mode reports the changes that it would make"
    assert other == {name: set() for name in NODES}


def test_the_node_runs_as_its_own_user_without_any_rights(
    setting: Setting, deployed: Played
) -> None:
    assert deployed.count("failures") == 0, deployed.output
    assert set(deployed.stats["ok"]) == set(NODES)
    for board in setting.boards.boards.values():
        about = process(board, NODE_UNIT)
        own = board.output("id", "-u", "testbed")
        assert about["Uid"].split() == [own] * 4
        assert about["NoNewPrivs"] == "1"
        assert {about[name].strip("0") for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
        assert about["Seccomp"] == "2"
        refused, output = board.root(
            *("nsenter", "--mount", "--target", main_pid(board, NODE_UNIT)),
            *("setpriv", "--reuid=testbed", "--clear-groups", "touch", "/var/lib/testbed/x"),
        )
        assert refused, "the node can write only to its own folder"
        assert "Read-only" in output


def test_limits_are_in_force(setting: Setting, deployed: object) -> None:
    for board in setting.boards.boards.values():
        shown = board.output("systemctl", "show", "-p", "MemoryMax,CPUQuotaPerSecUSec", NODE_UNIT)
        assert f"MemoryMax={200 << 20}" in shown
        assert "CPUQuotaPerSecUSec=1s" in shown


def test_the_secret_is_for_the_node_alone(
    setting: Setting, checked: tuple[Played, object], deployed: Played
) -> None:
    for board in setting.boards.boards.values():
        path = f"/etc/testbed/{LAB}/node.json"
        assert board.output("stat", "--format=%a %U %G", path) == "640 root testbed"
        assert SECRET in board.output("cat", path)
        exit_code, _ = board.root("setpriv", "--reuid=nobody", "--clear-groups", "cat", path)
        assert exit_code
    for played in (checked[0], deployed):
        assert SECRET not in played.output


def test_the_login_user_reaches_the_node_and_nodes_reach_each_other(
    setting: Setting, deployed: object, wait_until: Callable[..., None]
) -> None:
    for name in NODES:
        assert ask(setting.boards, name, {"do": "status"})["ok"]
        assert ask(setting.boards, name, {"do": "go"})["ok"]
        read = setting.boards.ssh(name, "cat", f"{DATA}/node.jsonl", f"{DATA}/node.stderr")
        assert '"start"' in read.stdout
    log = ("cat", f"{DATA}/node.jsonl")
    wait_until(lambda: '"connect"' in setting.boards["river"].output(*log), 60)


def test_the_capture_may_see_packets_and_nothing_else(setting: Setting, deployed: object) -> None:
    net_raw = 1 << 13
    for board in setting.boards.boards.values():
        about = process(board, CAPTURE_UNIT)
        assert int(about["CapEff"], 16) == int(about["CapBnd"], 16) == net_raw
        assert about["Uid"].split()[0] == board.output("id", "-u", "testbed")
        assert state(board, CAPTURE_UNIT) == "active"


def test_the_clock_is_measured_against_the_given_server(setting: Setting, deployed: Played) -> None:
    for board in NODES:
        clock = deployed.facts[board]["testbed_clock"]
        assert clock["discipline"] == "chrony"
        assert clock["source"] == setting.boards.gateway
        assert clock["offset_s"] == pytest.approx(-AHEAD_S, abs=0.2)
        assert clock["error_s"] > 0
        assert clock["error_s"] == pytest.approx(
            clock["root_dispersion_s"] + clock["root_delay_s"] / 2
        )


def test_packages_are_pushed_to_boards_that_lack_them(setting: Setting, deployed: object) -> None:
    for board in setting.boards.boards.values():
        installed = board.output("dpkg-query", "--show", "--showformat=${Package}\n").split()
        assert "pushed-all" in installed
        assert "pushed-riscv64" not in installed


def test_routes_to_nodes_elsewhere_are_set(setting: Setting, deployed: object) -> None:
    for board in setting.boards.boards.values():
        assert f"via {setting.boards.gateway}" in board.output("ip", "route", "show", ROUTE)


def test_a_second_deployment_changes_nothing_also_with_a_board_that_does_not_answer(
    setting: Setting, deployed: object
) -> None:
    before = [main_pid(board, NODE_UNIT) for board in setting.boards.boards.values()]
    inventory = setting.inventory()
    hosts = inventory["all"]["children"]["boards"]["hosts"]
    absent = ipaddress.ip_address(setting.boards.gateway) + 77
    hosts["lost"] = {**hosts["hill"], "ansible_host": str(absent)}
    again = play("deploy", inventory, setting.extra)
    assert again.stats["dark"] == {"lost": 1}, again.output
    assert set(again.stats["ok"]) == set(NODES), "the others are done"
    assert again.count("failures") == 0, again.output
    assert again.count("changed") == 0, again.output
    assert [main_pid(board, NODE_UNIT) for board in setting.boards.boards.values()] == before


def test_in_check_mode_a_deployed_board_needs_no_change(setting: Setting, deployed: object) -> None:
    played = setting.play("deploy", "--check")
    assert played.count("failures") == 0, played.output
    assert played.count("changed") == 0, played.output


def test_a_board_that_holds_another_run_is_left_alone(setting: Setting, deployed: object) -> None:
    before = [main_pid(board, NODE_UNIT) for board in setting.boards.boards.values()]
    other = play("deploy", setting.inventory(), {**setting.extra, "testbed_run": "valley-2"})
    assert set(other.stats["failures"]) == set(NODES)
    assert f"still holds run {RUN} of lab {LAB}" in other.output
    assert [main_pid(board, NODE_UNIT) for board in setting.boards.boards.values()] == before


def test_a_lab_without_shaping_or_capture_has_no_such_service(
    setting: Setting, deployed: object
) -> None:
    assert "rate 1Mbit" in setting.boards["river"].output("tc", "qdisc", "show", "dev", "eth0")
    off = {"testbed_shape": False, "testbed_capture": False}
    without = setting.play("deploy", **off)
    assert without.count("failures") == 0, without.output
    for board in setting.boards.boards.values():
        units = board.output("ls", "/etc/systemd/system").split()
        assert [unit for unit in units if LAB in unit] == [NODE_UNIT]
        assert {state(board, unit) for unit in (CAPTURE_UNIT, LINKS_UNIT)} == {"inactive"}
        assert "tbf" not in board.output("tc", "qdisc")


def test_collect_lists_the_files_with_their_checksums(setting: Setting, collected: Played) -> None:
    assert collected.count("failures") == 0, collected.output
    for name, board in setting.boards.boards.items():
        listed = {file["name"]: file for file in collected.facts[name]["testbed_collected"]}
        assert {"node.jsonl", "node.stderr", "capture.pcap", "capture.json"} <= set(listed)
        for file, about in listed.items():
            content = board.container.exec_run(["cat", f"{DATA}/{file}"]).output
            assert isinstance(content, bytes)
            assert about["path"] == f"{DATA}/{file}"
            assert about["size"] == len(content)
            assert about["sha256"] == hashlib.sha256(content).hexdigest()
        assert {state(board, unit) for unit in (NODE_UNIT, CAPTURE_UNIT)} == {"inactive"}
        last = json.loads(board.output("tail", "-n", "1", f"{DATA}/node.jsonl"))
        assert last["event"] == "stop", "the node logged its end"


def test_clean_leaves_nothing_even_of_a_partly_removed_lab(
    setting: Setting, cleaned: Played
) -> None:
    assert cleaned.count("failures") == 0, cleaned.output
    for board in setting.boards.boards.values():
        places = ["/etc", "/opt", "/var/lib", "/run", "/home"]
        ours = ("find", *places, "-path", "*testbed*", "-not", "-path", "*/dpkg/*")
        assert board.output(*ours) == ""
        assert "testbed" not in board.output("cat", "/etc/passwd", "/etc/group")
        assert board.output("ip", "route", "show", ROUTE) == ""
        assert LAB not in board.output("systemctl", "list-units", "--all", "--plain")


def test_a_second_clean_changes_nothing(setting: Setting, cleaned: object) -> None:
    again = setting.play("clean")
    assert again.count("failures") == 0, again.output
    assert again.count("changed") == 0, again.output
