"""What this machine can do, found out by trying it in a process and a namespace that are gone afterwards.

`python -m testbed.links.probe` prints the result as JSON; `look` (for `doctor` and others) asks such a process.
"""

import errno
import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass

from testbed.errors import MissingCapability, TestbedError
from testbed.links.emulator import Capabilities
from testbed.links.namespaces import enter_core, inside, make_network, privilege, privileged
from testbed.links.netlink import NetlinkError, netlink
from testbed.links.shaping import netem, tbf
from testbed.links.tap import close_tap, open_tap
from testbed.topology.model import Shape


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Whether namespaces can be made (else why not, with the way out), and with what links can be shaped."""

    namespaces: bool
    reason: str
    capabilities: Capabilities


def capabilities() -> Capabilities:
    """What the kernel offers, tried in a scratch namespace; the caller must be able to make one."""
    scratch = make_network()
    try:
        return Capabilities(
            netem=kernel_has("netem", scratch), tbf=kernel_has("tbf", scratch), tun=_taps(scratch)
        )
    finally:
        os.close(scratch)


def kernel_has(shaper: str, scratch: int) -> bool:
    """Whether the kernel accepts all that this shaper consists of, tried on the loopback of a scratch namespace."""
    with inside(scratch):
        index = socket.if_nametoindex("lo")
    requests = {
        "netem": netem(index, "lo", Shape(rate_bps=1e6, delay_s=0.001), 1500),
        "tbf": [tbf(index, "lo", 1e6, 30_000, 1600)],
    }[shaper]
    try:
        with netlink(scratch) as kernel:
            kernel.do(requests)
    except NetlinkError as error:
        if error.number in (errno.ENOENT, errno.EOPNOTSUPP):
            return False
        raise
    return True


def _taps(scratch: int) -> str:
    try:
        with inside(scratch):
            close_tap(open_tap("probe"))
    except MissingCapability as missing:
        return missing.message
    return ""


def probe_machine() -> ProbeResult:
    """Try everything in a process of its own."""
    tried = subprocess.run(
        [sys.executable, "-P", "-m", "testbed.links.probe"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if tried.returncode != 0:
        raise TestbedError(f"the probe failed: {tried.stderr.strip()[-500:]}")
    found = json.loads(tried.stdout)
    return ProbeResult(found["namespaces"], found["reason"], Capabilities(**found["capabilities"]))


def _try_everything() -> ProbeResult:
    as_root = privileged()
    try:
        enter_core(unprivileged=not as_root)
        found = capabilities()
    except TestbedError as error:
        no_capabilities = Capabilities(netem=False, tbf=False, tun="no namespaces")
        return ProbeResult(False, f"{error.message}; {error.hint}", no_capabilities)
    return ProbeResult(True, privilege(as_root), found)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_try_everything())))
