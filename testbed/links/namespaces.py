"""Network namespaces without names: held by file descriptors, so the kernel removes them with their last user.

Without root, a user namespace comes first; inside it the process may do all of this to networks of its own.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import MissingCapability
from testbed.syscalls import CLONE_NEWNET, CLONE_NEWUSER, setns, unshare

_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21


def privileged() -> bool:
    """Whether this process may make network namespaces as it is (root, as a rule)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return bool(held >> _CAP_SYS_ADMIN & 1 and held >> _CAP_NET_ADMIN & 1)
    return False


def open_own() -> int:
    """A descriptor of this process's network namespace."""
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def inside(ns_fd: int) -> Iterator[None]:
    """Work inside another network namespace for a while (this thread only)."""
    own_fd = open_own()
    try:
        setns(ns_fd, CLONE_NEWNET)
        try:
            yield
        finally:
            setns(own_fd, CLONE_NEWNET)
    finally:
        os.close(own_fd)


def make_network() -> int:
    """A new network namespace; it lives as long as the returned descriptor or a process in it."""
    own_fd = open_own()
    try:
        unshare(CLONE_NEWNET)
        try:
            made = open_own()
        finally:
            setns(own_fd, CLONE_NEWNET)
    finally:
        os.close(own_fd)
    silence(made)
    return made


@contextmanager
def empty_network() -> Iterator[int]:
    """A new network namespace for a process that is started meanwhile; it goes with the process."""
    made = make_network()
    try:
        yield made
    finally:
        os.close(made)


def silence(ns_fd: int) -> None:
    """Switch IPv6 off (router solicitations, multicast reports): captures hold the lab's own packets only."""
    with inside(ns_fd):
        for group in ("all", "default"):
            switch = Path(f"/proc/sys/net/ipv6/conf/{group}/disable_ipv6")
            try:
                switch.write_text("1")
            except FileNotFoundError:
                return  # a kernel without IPv6 is silent anyway
            except OSError:
                continue  # read-only /proc/sys: the links work, the captures hold a few packets more


def enter_core(unprivileged: bool) -> None:
    """Move this process into a new network namespace of its own, through a user namespace if it has to."""
    try:
        if unprivileged:
            _become_root_of_a_user_namespace()
        else:
            unshare(CLONE_NEWNET)
    except OSError as error:
        raise MissingCapability(
            f"this machine does not let us make network namespaces: {error.strerror or error}",
            refusal_hint(unprivileged),
        ) from error
    own = open_own()
    try:
        silence(own)
    finally:
        os.close(own)


def privilege(as_root: bool) -> str:
    """How namespaces are made here."""
    return "as root" if as_root else "in a user namespace, without root"


def _become_root_of_a_user_namespace() -> None:
    """Own user and group become 0 inside; the kernel allows the group map only after setgroups was given up."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | CLONE_NEWNET)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if not privileged():
        raise PermissionError(errno.EPERM, "the user namespace was made, but gives no rights")


def refusal_hint(unprivileged: bool) -> str:
    """Which setting of this machine forbids it, and the command that changes it."""
    if not unprivileged:
        return "in a container, give it --cap-add SYS_ADMIN,NET_ADMIN, or run as an ordinary user"
    if (setting := refusing_setting()) is not None:
        name, allowing = setting
        return f"allow it with `sudo sysctl -w {name}={allowing}`, or use sudo"
    return "a container's seccomp profile may forbid it; use sudo, or --security-opt seccomp=unconfined"


def refusing_setting() -> tuple[str, str] | None:
    """Which setting of the kernel forbids ordinary users to make namespaces, and the value that allows it."""
    for name, refusing, allowing in (
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user.max_user_namespaces", "0", "10000"),
        ("user.max_net_namespaces", "0", "10000"),
    ):
        if _sysctl(name) == refusing:
            return name, allowing
    return None


def _sysctl(name: str) -> str:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return ""
