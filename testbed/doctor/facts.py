"""What the doctor asks of a machine, not yet judged."""

from dataclasses import dataclass
from pathlib import Path

from testbed.backends.platforms import Machine


@dataclass(frozen=True, slots=True)
class Means:
    """With what repairs could be made here."""

    apt: bool
    systemd: bool
    dockerd: bool  # installed, whether or not it runs
    docker_host: str  # the engine that $DOCKER_HOST names, or empty
    engine_script: Path | None  # of the checkout that this program runs from
    modules: frozenset[str]  # parts of the kernel that can be loaded
    shell: int  # the process that called us


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found. Pairs are (whether, a phrase that says so or why not)."""

    python: tuple[int, int, int]
    root: bool
    namespaces: tuple[bool, str]
    refusing: (
        tuple[str, str] | None
    )  # the kernel's setting that forbids them, and the value that allows them
    netem: bool
    tbf: bool
    tun: str  # why taps cannot be made, or empty
    tun_forbidden: bool  # the device is there, but not for this user
    engine: tuple[bool, str]
    image: tuple[bool, str]
    processor: Machine
    memory: int  # bytes that programs could still take
    cores: int
    captures: Path
    disk_free: int
    open_files: int  # the most one process may open
    receive_buffer: int  # bytes a socket may ask for without root
    tasks: tuple[
        int, str
    ]  # processes and threads that can still be started, and the setting that limits them
    inotify: int | None  # instances a user may have; None where the engine needs none
    orphans: int  # what crashed labs have left
    means: Means
