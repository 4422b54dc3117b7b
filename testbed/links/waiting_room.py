"""A queue of so many bytes in front of netem, which itself only counts packets (a small alert as much as a full frame).

A policer drops what a line of this rate, with this much room in front of it, would have no room for. It stands in a
`prio` discipline around netem, which does not tell the sender. A netem that is full itself would tell: the sender's own
TCP then keeps the packet for later instead of losing it, as it would lose it in front of a modem or router.
"""

import errno
import socket
import struct

from testbed.links import messages as m
from testbed.links.netlink import Request
from testbed.links.requests import CREATE

_NEWTFILTER, _DELTFILTER = 44, 45
_TCA_KIND, _TCA_OPTIONS = 1, 2
_PRIO_QOPT = struct.Struct("=i16x")  # struct tc_prio_qopt: bands, and all priorities to the first
_FEWEST_BANDS = 2
_MATCHALL_ACT = 2
_ACT_KIND, _ACT_OPTIONS = 1, 2
_POLICE_TBF, _POLICE_RATE, _POLICE_RESULT, _POLICE_RATE64 = 1, 2, 5, 8
_POLICE = struct.Struct("=IiIIIBBHhHI12xiiI")  # struct tc_police (linux/pkt_cls.h), no peak rate
_RATE_TABLE = bytes(1024)  # must be there; not looked at
_ANY_CELL = 1
_ETHERNET = 1  # TC_LINKLAYER_ETHERNET
_PASS, _DROP = 0, 2  # TC_ACT_OK, TC_ACT_SHOT
_TICK_NS = 64  # of the kernel's packet scheduler
_MOST = 0xFFFFFFFF
_FIRST_FOR_ALL = 1 << 16 | socket.htons(0x0003)  # preference 1, ETH_P_ALL


def prio_options() -> bytes:
    """A `prio` whose packets all go to its first band."""
    return m.attribute(_TCA_OPTIONS, _PRIO_QOPT.pack(_FEWEST_BANDS))


def first_band(handle: int) -> int:
    """The parent of what stands in a prio's first band."""
    return handle | 1


def police(index: int, name: str, parent: int, rate: int, room: int) -> list[Request]:
    """Drop what does not fit into `room` bytes in front of a line of `rate` bytes a second, from now on."""
    burst = min(_MOST, max(1, round(room * 1e9 / rate / _TICK_NS)))
    parameters = _POLICE.pack(
        *(0, _DROP, 0, burst, _MOST),  # index, action, limit, burst, mtu
        *(_ANY_CELL, _ETHERNET, 0, 0, 0, min(rate, _MOST)),  # struct tc_ratespec
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
