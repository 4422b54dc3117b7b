"""The kernel's own shapers, by netlink: `tbf` (rate only) and `netem` (rate, delay, jitter, loss).

Each direction is shaped where it leaves an interface: `up` at the node's eth0, `down` at the link's far end l<n>.
Times are told in nanoseconds (Linux 4.15), buckets in bytes (3.13): no scheduler ticks, no rate tables.
"""

import errno
import struct

from testbed.links import messages as m
from testbed.links.changes import Line
from testbed.links.netlink import Request
from testbed.links.requests import REPLACE
from testbed.links.sizes import ETHERNET_HEADER, queue_bytes, tbf_burst
from testbed.links.waiting_room import first_band, police, prio_options
from testbed.topology.model import Emulator, Shape

_UNLIMITED_BPS = 100e9  # netem keeps packets in order only when it has a rate
_MANY_PACKETS = 100_000  # netem's own limit; the queue is limited in bytes, in front of it
# A handle for each kind: the kernel refuses to make a discipline of one kind out of one of another.
_HANDLES = {"tbf": 0x00010000, "netem": 0x00020000, "blackhole": 0x00030000, "prio": 0x00040000}
_NEWQDISC, _DELQDISC = 36, 37
_ROOT = 0xFFFFFFFF  # TC_H_ROOT
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_NETEM_RATE, _NETEM_RATE64, _NETEM_LATENCY64, _NETEM_JITTER64, _NETEM_SEED = 6, 8, 10, 11, 14
_ETHERNET = 1  # TC_LINKLAYER_ETHERNET
_TBF_QOPT = struct.Struct("=xBHhHI12xIII")  # struct tc_tbf_qopt (linux/pkt_sched.h), no peak rate
_NETEM_QOPT = struct.Struct("=IIIIII")  # struct tc_netem_qopt: latency, limit, loss, ...
_NETEM_RATE_OPT = struct.Struct("=IiIi")  # struct tc_netem_rate
_MOST = 0xFFFFFFFF


def tbf(index: int, name: str, rate_bps: float, limit: int, burst: int) -> Request:
    """A token bucket; rate in bits a second, limit and burst in bytes."""
    rate = max(1, round(rate_bps / 8))
    parameters = _TBF_QOPT.pack(_ETHERNET, 0, 0, 0, min(rate, _MOST), limit, 0, 0)
    options = m.nest(
        _TCA_OPTIONS,
        m.attribute(_TBF_PARMS, parameters),
        m.u64(_TBF_RATE64, rate),
        m.u32(_TBF_BURST, burst),
    )
    return _discipline(index, name, "tbf", options)


def netem(index: int, name: str, shape: Shape, mtu: int, seed: int = 0) -> list[Request]:
    """The kernel's network emulator behind a queue in bytes; the seed (of 64 bits) counts from Linux 6.6 on."""
    rate = max(1, round((shape.rate_bps or _UNLIMITED_BPS) / 8))
    outer = _HANDLES["prio"]
    return [
        _discipline(index, name, "prio", prio_options()),
        _discipline(index, name, "netem", _netem_options(shape, rate, seed), first_band(outer)),
        *police(index, name, outer, rate, _room(shape, rate, mtu)),
    ]


def _room(shape: Shape, rate: int, mtu: int) -> int:
    """Bytes for what waits and for the packet on the line."""
    if shape.rate_bps is None:
        return rate  # a second of a very fast line
    return queue_bytes(shape, mtu) + mtu + ETHERNET_HEADER


def _netem_options(shape: Shape, rate: int, seed: int) -> bytes:
    loss = round(shape.loss * _MOST)
    options = (
        _NETEM_QOPT.pack(0, _MANY_PACKETS, loss, 0, 0, 0),
        m.attribute(_NETEM_RATE, _NETEM_RATE_OPT.pack(min(rate, _MOST), 0, 0, 0)),
        m.u64(_NETEM_RATE64, rate),
        m.s64(_NETEM_LATENCY64, round(shape.delay_s * 1e9)),
        m.s64(_NETEM_JITTER64, round(shape.jitter_s * 1e9)),
        m.u64(_NETEM_SEED, seed),
    )
    return m.attribute(_TCA_OPTIONS, b"".join(options))


def unshaped(index: int, name: str) -> Request:
    """Back to the kernel's default; fine if nothing was set."""
    nothing_there = frozenset({errno.ENOENT, errno.EINVAL})
    body = m.about_queueing(index, 0, _ROOT)
    return Request(f"unshape {name}", _DELQDISC, 0, body, nothing_there)


def cut(index: int, name: str) -> Request:
    """Whatever is sent vanishes, and what waited is gone; every kernel that can shape can do this."""
    return _discipline(index, name, "blackhole", b"")


def shapers(
    emulator: Emulator, index: int, name: str, line: Line, mtu: int, seed: int = 0
) -> list[Request]:
    """The requests that make one direction behave as asked."""
    shape = line.shape
    if line.cut:
        return [cut(index, name)]
    if emulator is Emulator.NETEM and shape != Shape(queue_bytes=shape.queue_bytes):
        return netem(index, name, shape, mtu, seed)
    if emulator is Emulator.TBF and shape.rate_bps is not None:
        burst = tbf_burst(shape.rate_bps, mtu, shape.burst_bytes)
        return [tbf(index, name, shape.rate_bps, max(queue_bytes(shape, mtu), burst), burst)]
    return [unshaped(index, name)]


def _discipline(index: int, name: str, kind: str, options: bytes, parent: int = _ROOT) -> Request:
    body = m.about_queueing(index, _HANDLES[kind], parent) + m.text(_TCA_KIND, kind) + options
    return Request(f"shape {name} with {kind}", _NEWQDISC, REPLACE, body)
