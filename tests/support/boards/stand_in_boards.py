"""Stand-ins for Raspberry Pis: containers that boot systemd and let Ansible in over SSH.

They share this machine's kernel, so tests leave its modules, sysctls and clock alone. Everything else is as on a board:
Debian's Python, its systemd, its sshd, a user `pi` with a key and sudo.
"""

import io
import secrets
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from support.boards.stand_in_image import USER, ensure_board_image
from testbed.backends.docker.engine import engine
from testbed.backends.docker.platforms import Platform, inspect_machine, judge

OWNER_LABEL = "testbed.stand-in"
BOOT_S = 120.0  # under qemu it takes a while
CGROUPS = Path("/sys/fs/cgroup")
# Capabilities that systemd needs to isolate its services. Not the clock, not the kernel's modules.
RIGHTS = ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"]


@dataclass(frozen=True, slots=True)
class StandIn:
    """One stand-in board."""

    name: str
    address: str
    container: Container

    def root(self, *command: str) -> tuple[int, str]:
        """Run a command as root without SSH; return exit code and output."""
        done = self.container.exec_run(list(command))
        assert done.exit_code is not None
        assert isinstance(done.output, bytes)
        return done.exit_code, done.output.decode(errors="replace")

    def output(self, *command: str) -> str:
        """The output of a command that must succeed."""
        code, text = self.root(*command)
        assert code == 0, f"{self.name}: {' '.join(command)}: {text}"
        return text.strip()


@dataclass(frozen=True, slots=True)
class StandIns:
    """The boards, and how to log in to them; `gateway` is this machine's own address on their network."""

    boards: Mapping[str, StandIn]
    key: Path
    known_hosts: Path
    gateway: str
    user: str = USER

    def __getitem__(self, name: str) -> StandIn:
        return self.boards[name]

    def ssh_options(self) -> list[str]:
        """Options of ssh: it knows the boards' host keys, and accepts no other."""
        settings = {
            "IdentityFile": self.key,
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.known_hosts,
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "ConnectTimeout": "5",
        }
        return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]

    def ssh(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the login user, and wait for its end."""
        return subprocess.run(
            ["ssh", *self.ssh_options(), f"{self.user}@{self[name].address}", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def inventory(self, variables: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """Ansible's inventory: the group `boards`, each with the variables given for it."""
        hosts = {
            board.name: {"ansible_host": board.address, **(variables or {}).get(board.name, {})}
            for board in self.boards.values()
        }
        common = {
            "ansible_user": self.user,
            "ansible_ssh_common_args": " ".join(self.ssh_options()),
        }
        return {"all": {"children": {"boards": {"hosts": hosts, "vars": common}}}}


@contextmanager
def stand_in_boards(names: Sequence[str], platform: str = "linux/amd64") -> Iterator[StandIns]:
    """Boot the boards and wait for sshd; remove everything at the end."""
    image = ensure_board_image(platform)
    client = engine()
    owner = secrets.token_hex(3)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tb-stand-in-")))
        network = _network(client, owner)
        stack.callback(network.remove)
        boards = {}
        for name in names:
            _make_key(folder / name)
        _make_key(folder / "login")
        for name in names:
            container = _create(client, image, platform, name, owner)
            stack.callback(_remove, container)
            _put_keys(container, folder / name, folder / "login.pub")
            container.start()
            boards[name] = StandIn(name, _address(container, network), container)
        known = folder / "known_hosts"
        known.write_text(
            "".join(
                f"{board.address} {(folder / f'{name}.pub').read_text()}"
                for name, board in boards.items()
            )
        )
        gateway = network.attrs["IPAM"]["Config"][0]["Gateway"]
        # The kernel gives an emulated sudo no rights (no flag C of binfmt_misc): there root itself logs in.
        emulated = judge(Platform.parse(platform), inspect_machine()).emulated
        made = StandIns(boards, folder / "login", known, gateway, "root" if emulated else USER)
        for name in names:
            _wait_for_login(made, name)
        yield made


def _network(client: docker.DockerClient, owner: str) -> Network:
    network = client.networks.create(
        f"stand-in-{owner}",
        driver="bridge",
        labels={OWNER_LABEL: owner},
        options={"com.docker.network.bridge.name": f"stand-in-{owner}"},
    )
    network.reload()
    return network


def _create(
    client: docker.DockerClient, image: str, platform: str, name: str, owner: str
) -> Container:
    return client.containers.create(
        image,
        ["/lib/systemd/systemd", "--log-target=console", "--show-status=0"],
        platform=platform,
        name=f"stand-in-{owner}-{name}",
        hostname=name,
        network=f"stand-in-{owner}",
        labels={OWNER_LABEL: owner},
        environment={"container": "docker"},
        cap_add=RIGHTS,
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        tmpfs={"/run": "mode=755", "/run/lock": "", "/tmp": "mode=1777"},
        stop_signal="SIGRTMIN+3",
        tty=True,
        **_cgroups(),
    )


def _cgroups() -> dict[str, Any]:
    """Give systemd its own cgroup tree, within the tree of its container."""
    if (CGROUPS / "cgroup.controllers").exists():
        return {"cgroupns": "private", "volumes": [f"{CGROUPS}:{CGROUPS}:rw"]}
    # cgroup v1: as systemd finds it on a machine without v2 beside it.
    found = [entry.name for entry in CGROUPS.iterdir() if entry.name != "unified"]
    return {
        "cgroupns": "host",
        "volumes": [f"{CGROUPS / name}:{CGROUPS / name}:rw" for name in found],
    }


def _make_key(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "stand-in", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _put_keys(container: Container, host: Path, login: Path) -> None:
    uid = 1000  # of the first user that Debian makes
    homes = ((f"home/{USER}", uid), ("root", 0))
    files = [
        ("etc/ssh/ssh_host_ed25519_key", host.read_bytes(), 0o600, 0),
        ("etc/ssh/ssh_host_ed25519_key.pub", host.with_suffix(".pub").read_bytes(), 0o644, 0),
        *((f"{home}/.ssh/authorized_keys", login.read_bytes(), 0o600, own) for home, own in homes),
    ]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for home, owner in homes:
            folder = tarfile.TarInfo(f"{home}/.ssh")
            folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o700, owner, owner
            tar.addfile(folder)
        for name, content, mode, owner in files:
            about = tarfile.TarInfo(name)
            about.size, about.mode, about.uid, about.gid = len(content), mode, owner, owner
            tar.addfile(about, io.BytesIO(content))
    container.put_archive("/", archive.getvalue())


def _address(container: Container, network: Network) -> str:
    container.reload()
    return str(container.attrs["NetworkSettings"]["Networks"][network.name]["IPAddress"])


def _wait_for_login(made: StandIns, name: str) -> None:
    deadline = time.monotonic() + BOOT_S
    while (tried := made.ssh(name, "true")).returncode:
        board = made[name].container
        board.reload()
        late = time.monotonic() > deadline
        if late or board.status != "running":
            log = board.logs(tail=40).decode(errors="replace")
            raise AssertionError(f"{name} ({board.status}) accepts no login: {tried.stderr}\n{log}")
        time.sleep(0.3)


def _remove(container: Container) -> None:
    with suppress(NotFound):
        container.remove(force=True, v=True)
