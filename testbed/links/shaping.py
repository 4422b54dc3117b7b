"""The kernel's own shapers, by netlink: `tbf` (rate only) and `netem` (rate, delay, jitter, loss).

Each direction is shaped where it leaves an interface: `up` at the node's eth0, `down` at the core's l<n>.
"""

import errno
import math

from pyroute2.netlink.rtnl import RTM_DELQDISC, RTM_NEWQDISC, TC_H_ROOT

from testbed.links.netlink import Request
from testbed.links.queueing import Netem, Plain, Queueing, Tbf
from testbed.links.requests import REPLACE
from testbed.links.sizes import ETHERNET_HEADER, queue_bytes, tbf_burst
from testbed.topology.model import Emulator, Shape

_UNLIMITED_BPS = 100e9  # netem keeps packets in order only when it has a rate
_UNLIMITED_PACKETS = 100_000
_HANDLE = 0x00010000  # 1:0
_ETHERNET = 1  # TC_LINKLAYER_ETHERNET: no rate table needed


def tbf(index: int, name: str, rate_bps: float, limit: int, burst: int) -> Request:
    """A token bucket; rate in bits a second, limit and burst in bytes."""
    rate = max(1, round(rate_bps / 8))
    parameters = {"rate": min(rate, 0xFFFFFFFF), "rate_linklayer": _ETHERNET, "limit": limit}
    message = _root(Tbf(), index)
    message["attrs"] = [
        ("TCA_KIND", "tbf"),
        (
            "TCA_OPTIONS",
            {
                "attrs": [
                    ("TCA_TBF_PARMS", parameters),
                    ("TCA_TBF_RATE64", rate),
                    ("TCA_TBF_BURST", burst),
                ]
            },
        ),
    ]
    return Request(f"shape {name} with tbf", RTM_NEWQDISC, REPLACE, message)


def netem(index: int, name: str, shape: Shape, mtu: int, seed: int = 0) -> Request:
    """The kernel's network emulator; the seed (of 64 bits) counts from Linux 6.6 on."""
    rate = max(1, round((shape.rate_bps or _UNLIMITED_BPS) / 8))
    message = _root(Netem(), index)
    message["attrs"] = [
        ("TCA_KIND", "netem"),
        (
            "TCA_OPTIONS",
            {
                "limit": netem_limit(shape, mtu),
                "loss": round(shape.loss * 0xFFFFFFFF),
                "attrs": [
                    ("TCA_NETEM_RATE", {"rate": min(rate, 0xFFFFFFFF)}),
                    ("TCA_NETEM_RATE64", rate),
                    ("TCA_NETEM_LATENCY64", round(shape.delay_s * 1e9)),
                    ("TCA_NETEM_JITTER64", round(shape.jitter_s * 1e9)),
                    ("TCA_NETEM_PRNG_SEED", seed),
                ],
            },
        ),
    ]
    return Request(f"shape {name} with netem", RTM_NEWQDISC, REPLACE, message)


def netem_limit(shape: Shape, mtu: int) -> int:
    """netem counts packets, and those under way on the delay line too: queue plus rate times delay."""
    if shape.rate_bps is None:
        return _UNLIMITED_PACKETS
    under_way = shape.rate_bps / 8 * (shape.delay_s + shape.jitter_s)
    frame = mtu + ETHERNET_HEADER
    return max(1, math.ceil((queue_bytes(shape, mtu) + under_way) / frame))


def unshaped(index: int, name: str) -> Request:
    """Back to the kernel's default; fine if nothing was set."""
    message = _root(Plain(), index)
    nothing_there = frozenset({errno.ENOENT, errno.EINVAL})
    return Request(f"unshape {name}", RTM_DELQDISC, 0, message, nothing_there)


def shaper(
    emulator: Emulator, index: int, name: str, shape: Shape, mtu: int, seed: int = 0
) -> Request:
    """The request that makes one direction behave as asked."""
    if emulator is Emulator.NETEM and shape != Shape(queue_bytes=shape.queue_bytes):
        return netem(index, name, shape, mtu, seed)
    if emulator is Emulator.TBF and shape.rate_bps is not None:
        burst = tbf_burst(shape.rate_bps, mtu)
        return tbf(index, name, shape.rate_bps, max(queue_bytes(shape, mtu), burst), burst)
    return unshaped(index, name)


def _root(message: Queueing, index: int) -> Queueing:
    message["index"] = index
    message["parent"] = TC_H_ROOT
    message["handle"] = _HANDLE
    return message
