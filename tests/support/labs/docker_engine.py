"""A Docker engine of the test's own: with its own data and socket, so that killing it harms no other container."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import docker

PATIENCE_S = 60.0


class OwnEngine:
    """dockerd with the flags of scripts/engine, in a folder of its own; its containerd is its child."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tb-engine-", dir="/tmp"))
        self._log = (self.folder / "log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The value for DOCKER_HOST."""
        return f"unix://{self.folder}/sock"

    def start(self, *flags: str) -> None:
        """Start the engine, also over the remains of a killed one."""
        for left in (self.folder / "pid", self.folder / "exec" / "containerd" / "containerd.pid"):
            left.unlink(missing_ok=True)
        command = ["dockerd", "--data-root", str(self.folder / "data")]
        command += ["--exec-root", str(self.folder / "exec"), "-H", self.address]
        command += ["--pidfile", str(self.folder / "pid"), "--bridge", "none"]
        command += ["--iptables=false", "--ip6tables=false", *flags]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._wait(self.answers)

    def kill(self) -> None:
        """Kill the engine as a crash would: it notifies no process, and cleans nothing up."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill_containerd(self) -> None:
        """The part of the engine that holds the containers' processes."""
        (pid,) = [pid for pid, name in self._helpers().items() if name == "containerd"]
        os.kill(pid, signal.SIGKILL)
        self._wait(lambda: pid not in self._helpers())

    def answers(self) -> bool:
        """Whether the engine answers requests now."""
        if self._process is not None:
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            try:
                connection.connect(self.address.removeprefix("unix://"))
                connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 " in connection.recv(64)
            except OSError:
                return False

    def client(self) -> docker.DockerClient:
        """A client of this engine; the caller closes it."""
        return docker.DockerClient(self.address, timeout=60)

    def take_image(self, name: str, other: docker.DockerClient) -> None:
        """Load another engine's image from a file: nothing is built or pulled."""
        client = self.client()
        try:
            with tempfile.TemporaryFile(dir=self.folder) as archive:
                for chunk in other.images.get(name).save(chunk_size=1 << 20, named=True):
                    archive.write(chunk)
                archive.seek(0)
                client.images.load(archive)
        finally:
            client.close()

    def end(self) -> None:
        """Remove the engine, its containers and its folder; nothing outside of it is touched."""
        try:
            if self._process is None or self._process.poll() is not None:
                self.start()
            client = self.client()
            for container in client.containers.list(all=True, ignore_removed=True):
                container.remove(force=True)
            client.close()
        finally:
            if self._process is not None:
                self._process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(PATIENCE_S)
                self._process.kill()
                self._process.wait()
            for pid in self._helpers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._wait(lambda: not self._helpers())
            self._log.close()
            self._unmount()
            shutil.rmtree(self.folder)

    def _helpers(self) -> dict[int, str]:
        """containerd and its shims: their command lines name our folder."""
        found = {}
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and str(self.folder) in (entry / "cmdline").read_text():
                    name = (entry / "comm").read_text().strip()
                    if name.startswith("containerd"):
                        found[int(entry.name)] = name
        return found

    def _unmount(self) -> None:
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in reversed(mounts):
            if mount.startswith(str(self.folder)):
                subprocess.run(["umount", "--lazy", mount], check=True)

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)
