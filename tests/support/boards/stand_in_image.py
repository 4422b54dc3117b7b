"""The image of boards that stand in for Raspberry Pis: Debian with systemd, SSH, sudo and chrony."""

import datetime
import fcntl
import hashlib
import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import docker

from testbed.backends.docker import image_build
from testbed.backends.docker.engine import engine
from testbed.backends.docker.image_recipe import UNNEEDED, PackagesImage, write_archive
from testbed.backends.docker.platforms import Platform

REPOSITORY = "testbed-stand-in-board"  # not among the product's own images
PACKAGES = (
    "chrony",
    "iproute2",
    "openssh-server",
    "passwd",
    "python3",
    "sudo",
    "systemd",
    "systemd-sysv",
)
BUILD_TIMEOUT_S = 900
# A container shares its kernel: units that would configure it for the whole machine do not run.
MASKED = """
apt-daily.timer apt-daily-upgrade.timer console-getty.service dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
getty.target modprobe@.service motd-news.timer proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount
systemd-binfmt.service systemd-hwdb-update.service systemd-journald-audit.socket systemd-logind.service
systemd-modules-load.service systemd-networkd.service systemd-random-seed.service systemd-remount-fs.service
systemd-sysctl.service systemd-sysusers.service systemd-udev-settle.service systemd-udev-trigger.service
systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-update-utmp.service
"""
# chrony runs and measures, but leaves the machine's own clock alone: -x.
FILES = {
    "etc/default/chrony": 'DAEMON_OPTS="-F 0 -x"\n',
    "etc/systemd/system/chrony.service.d/stand-in.conf": "[Unit]\nConditionCapability=\n",
    "etc/chrony/chrony.conf": (
        "sourcedir /etc/chrony/sources.d\ndriftfile /var/lib/chrony/chrony.drift\nlogdir /var/log/chrony\n"
    ),
    "etc/sudoers.d/pi": "pi ALL=(ALL) NOPASSWD: ALL\n",
    "etc/machine-id": "",
    "etc/hostname": "",
    # sshd looks up no client names in DNS, and accepts no password.
    "etc/ssh/sshd_config.d/stand-in.conf": "UseDNS no\nPasswordAuthentication no\n",
}
USER = "pi"


@dataclass(frozen=True, slots=True)
class BoardImage(PackagesImage):
    """Unlike a node image its packages are configured: there are users, and services begin at boot."""

    @property
    def name(self) -> str:
        recipe = json.dumps([str(self.platform), build_command(self, "any")])
        return f"{REPOSITORY}:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure_board_image(platform: str = "linux/amd64") -> str:
    """The name of the image; it is built where the engine does not have it (by one process at a time)."""
    image = BoardImage(PACKAGES, Platform.parse(platform))
    client = engine()
    with _alone():
        if not image_build.is_present(client, image.name):
            _build(client, image)
    return image.name


@contextmanager
def _alone() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / f"{REPOSITORY}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_command(image: BoardImage, suite: str) -> list[str]:
    """mmdebstrap's arguments: package sources in, the layer out."""
    hooks = [
        f'--customize-hook=chroot "$1" useradd --create-home --shell /bin/sh {USER}',
        '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*',
        *(f"--customize-hook={_writing(path, text)}" for path, text in sorted(FILES.items())),
        *(
            f'--customize-hook=ln -sf /dev/null "$1"/etc/systemd/system/{unit}'
            for unit in MASKED.split()
        ),
    ]
    return [
        "mmdebstrap",
        "--variant=apt",
        "--skip=check/qemu",  # the engine has checked whether such programs run
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        f"--architectures={image.platform.debian}",
        f"--include={','.join(image.packages)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in UNNEEDED),
        *hooks,
        suite,
        "-",  # the layer
        "-",  # the package sources
    ]


def _writing(path: str, text: str) -> str:
    inside = f'"$1"/{path}'
    return f'mkdir -p "$(dirname {inside})" && printf %s {shlex.quote(text)} > {inside}'


def _build(client: docker.DockerClient, image: BoardImage) -> None:
    suite = image_build._suite()
    sources = image_build._package_sources(suite, image.platform.debian)
    of_release = [line for line in sources if line.split()[2] == suite]
    with tempfile.TemporaryFile() as layer, tempfile.TemporaryFile() as archive:
        if problem := _run(image, suite, sources, layer):
            # Mirrors do not always have the updates for another processor.
            layer.seek(0)
            layer.truncate()
            again = _run(image, suite, of_release, layer)
            assert not again, f"{problem}\nand without updates:\n{again}"
        created = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        write_archive(image, layer, archive, created)
        archive.seek(0)
        client.images.load(archive)


def _run(image: BoardImage, suite: str, sources: list[str], layer: IO[bytes]) -> str:
    """Run the command; return its error, if any."""
    done = subprocess.run(
        build_command(image, suite),
        input="".join(f"{line}\n" for line in sources).encode(),
        stdout=layer,
        stderr=subprocess.PIPE,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    return done.stderr.decode(errors="replace")[-2000:] if done.returncode else ""
