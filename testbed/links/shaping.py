"""The kernel's own shapers, by netlink: `tbf` (rate only) and `netem` (rate, delay, jitter, loss).

Each direction is shaped where it leaves an interface: `up` at the node's eth0, `down` at the link's far end l<n>.
Times are given in nanoseconds (Linux 4.15), buckets in bytes (3.13): no scheduler ticks, no rate tables.
"""

import errno
import socket
import struct

from testbed.links import netlink_messages as m
from testbed.links.changes import DirectionState
from testbed.links.model import ETHERNET_HEADER, queue_bytes, queue_limit, tbf_burst
from testbed.links.netlink import Request
from testbed.links.requests import CREATE, REPLACE
from testbed.topology.model import Emulator, Shape

# A queue of so many bytes in front of netem, which itself only counts packets (a small alert as much as a full frame).
#
# A policer drops what the queue of a link of this rate would not hold. It is part of a `prio` discipline around netem,
# which does not report the drop to the sender. A full netem would report it: the sender's own TCP would then keep the
# packet for later instead of losing it, as it would lose it in front of a modem or router.


_NEWTFILTER, _DELTFILTER = 44, 45


_PRIO_QOPT = struct.Struct("=i16x")  # struct tc_prio_qopt: bands, and all priorities to the first
_FEWEST_BANDS = 2
_MATCHALL_ACT = 2
_ACT_KIND, _ACT_OPTIONS = 1, 2
_POLICE_TBF, _POLICE_RATE, _POLICE_RESULT, _POLICE_RATE64 = 1, 2, 5, 8
_POLICE = struct.Struct("=IiIIIBBHhHI12xiiI")  # struct tc_police (linux/pkt_cls.h), no peak rate
_RATE_TABLE = bytes(1024)  # required, but not read
_ANY_CELL = 1


_PASS, _DROP = 0, 2  # TC_ACT_OK, TC_ACT_SHOT
_TICK_NS = 64  # of the kernel's packet scheduler


_FIRST_FOR_ALL = 1 << 16 | socket.htons(0x0003)  # preference 1, ETH_P_ALL


def prio_options() -> bytes:
    """A `prio` whose packets all go to its first band."""
    return m.attribute(_TCA_OPTIONS, _PRIO_QOPT.pack(_FEWEST_BANDS))


def first_band(handle: int) -> int:
    """The parent of what stands in a prio's first band."""
    return handle | 1


def police(index: int, name: str, parent: int, rate: int, limit_bytes: int) -> list[Request]:
    """Drop what does not fit into a queue of `limit_bytes` in front of a link of `rate` bytes a second."""
    burst = min(_MAX_U32, max(1, round(limit_bytes * 1e9 / rate / _TICK_NS)))
    parameters = _POLICE.pack(
        *(0, _DROP, 0, burst, _MAX_U32),  # index, action, limit, burst, mtu
        *(_ANY_CELL, _ETHERNET, 0, 0, 0, min(rate, _MAX_U32)),  # struct tc_ratespec
        *(0, 0, 0),
    )
    action = m.nest(
        1,
        m.text(_ACT_KIND, "police"),
        m.nest(
            _ACT_OPTIONS,
            m.attribute(_POLICE_TBF, parameters),
            m.attribute(_POLICE_RATE, _RATE_TABLE),
            m.u32(_POLICE_RESULT, _PASS),
            m.u64(_POLICE_RATE64, rate),
        ),
    )
    body = m.about_queueing(index, 1, parent, _FIRST_FOR_ALL) + m.text(_TCA_KIND, "matchall")
    none_there = frozenset({errno.ENOENT, errno.EINVAL})
    return [
        Request(f"forget the queue of {name}", _DELTFILTER, 0, body, none_there),
        Request(
            f"limit the queue of {name}",
            _NEWTFILTER,
            CREATE,
            body + m.nest(_TCA_OPTIONS, m.nest(_MATCHALL_ACT, action)),
        ),
    ]


_UNLIMITED_BPS = 100e9  # netem keeps packets in order only when it has a rate
_NETEM_PACKET_LIMIT = 100_000  # netem's own limit; the queue is limited in bytes, in front of it
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
_MAX_U32 = 0xFFFFFFFF


def tbf(index: int, name: str, rate_bps: float, limit: int, burst: int) -> Request:
    """A token bucket; rate in bits a second, limit and burst in bytes."""
    rate = max(1, round(rate_bps / 8))
    parameters = _TBF_QOPT.pack(_ETHERNET, 0, 0, 0, min(rate, _MAX_U32), limit, 0, 0)
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
        *police(index, name, outer, rate, _queue_limit(shape, rate, mtu)),
    ]


def _queue_limit(shape: Shape, rate: int, mtu: int) -> int:
    """Bytes for the queue and for the packet that the link transmits."""
    if shape.rate_bps is None:
        return rate  # a second of a very fast link
    return queue_bytes(shape, mtu) + mtu + ETHERNET_HEADER


def _netem_options(shape: Shape, rate: int, seed: int) -> bytes:
    loss = round(shape.loss * _MAX_U32)
    options = (
        _NETEM_QOPT.pack(0, _NETEM_PACKET_LIMIT, loss, 0, 0, 0),
        m.attribute(_NETEM_RATE, _NETEM_RATE_OPT.pack(min(rate, _MAX_U32), 0, 0, 0)),
        m.u64(_NETEM_RATE64, rate),
        m.s64(_NETEM_LATENCY64, round(shape.delay_s * 1e9)),
        m.s64(_NETEM_JITTER64, round(shape.jitter_s * 1e9)),
        m.u64(_NETEM_SEED, seed),
    )
    return m.attribute(_TCA_OPTIONS, b"".join(options))


def unshaped(index: int, name: str) -> Request:
    """Back to the kernel's default; fine if nothing was set."""
    not_present = frozenset({errno.ENOENT, errno.EINVAL})
    body = m.about_queueing(index, 0, _ROOT)
    return Request(f"unshape {name}", _DELQDISC, 0, body, not_present)


def cut(index: int, name: str) -> Request:
    """Whatever is sent vanishes, and what waited is gone; every kernel that can shape can do this."""
    return _discipline(index, name, "blackhole", b"")


def shapers(
    emulator: Emulator, index: int, name: str, state: DirectionState, mtu: int, seed: int = 0
) -> list[Request]:
    """The requests that make one direction behave as asked."""
    shape = state.shape
    if state.cut:
        return [cut(index, name)]
    if emulator is Emulator.NETEM and shape != Shape(queue_bytes=shape.queue_bytes):
        return netem(index, name, shape, mtu, seed)
    if emulator is Emulator.TBF and shape.rate_bps is not None:
        burst = tbf_burst(shape.rate_bps, mtu, shape.burst_bytes)
        limit = queue_limit(emulator, shape, mtu) or burst
        return [tbf(index, name, shape.rate_bps, limit, burst)]
    return [unshaped(index, name)]


def _discipline(index: int, name: str, kind: str, options: bytes, parent: int = _ROOT) -> Request:
    body = m.about_queueing(index, _HANDLES[kind], parent) + m.text(_TCA_KIND, kind) + options
    return Request(f"shape {name} with {kind}", _NEWQDISC, REPLACE, body)
