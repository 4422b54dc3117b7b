"""The playbooks on a board with an ARM processor: its Debian, its systemd and its Python, through qemu."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import ansible_runner
import pytest

from support.boards.stand_in_boards import StandIns, stand_in_boards
from testbed.backends.common import zipapp

pytestmark = [pytest.mark.ansible, pytest.mark.arm, pytest.mark.docker, pytest.mark.root]

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
UNIT = "testbed-node-valley.service"
NODE = {
    "lab": "valley",
    "run": "valley-1",
    "name": "river",
    "number": 1,
    "kind": "broker",
    "control": "/run/testbed-valley/ctl",
    "log": "/var/lib/testbed/valley/node.jsonl",
    "seed": 1,
    "overlay": {"method": "star", "parameters": {}},
    "delivery": {"method": "fifo", "parameters": {}},
    "deliveries": {},
    "listen": {"host": "0.0.0.0", "port": 9000},
    "brokers": [],
    "seeds": [],
    "topics": [],
    "dimensions": 0,
    "secret": "0123456789abcdef",
    "journal": None,
}


@pytest.fixture(scope="module")
def boards() -> Iterator[StandIns]:
    with stand_in_boards(["river"], "linux/arm64") as made:
        yield made


@pytest.mark.timeout(1800)  # an emulated board, whose image may have to be built first
def test_a_board_with_an_arm_processor_is_deployed_and_cleaned(
    boards: StandIns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (tmp_path / "hosts/river").mkdir(parents=True)
    (tmp_path / "hosts/river/node.json").write_text(json.dumps(NODE))
    zipapp.build(tmp_path / "nodes.pyz")
    # An emulator does not implement traffic control and packet sockets as a kernel does.
    own = {"testbed_node": "river", "testbed_shape": False, "testbed_capture": False}
    extra = {"testbed_lab": "valley", "testbed_run": "valley-1", "testbed_files": str(tmp_path)}

    def play(name: str) -> None:
        done = ansible_runner.run(
            private_data_dir=str(tmp_path / name),
            playbook=str(PLAYBOOKS / f"{name}.yml"),
            inventory=boards.inventory({"river": own}),
            extravars=extra,
            envvars={"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg")},
            quiet=True,
        )
        with done.stdout as output:
            assert done.status == "successful", output.read()

    (tmp_path / "deploy").mkdir()
    (tmp_path / "clean").mkdir()
    play("deploy")
    river = boards["river"]
    assert river.output("uname", "-m") == "aarch64"
    assert river.output("systemctl", "is-active", UNIT) == "active"
    assert '"start"' in river.output("cat", "/var/lib/testbed/valley/node.jsonl")
    play("clean")
    assert river.root("systemctl", "is-active", UNIT)[1].strip() == "inactive"
    assert river.root("ls", "/opt/testbed")[0] != 0
