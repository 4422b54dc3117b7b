"""The bytes that ask the kernel for a shaper, read back with the structures of linux/pkt_sched.h."""

import struct

from testbed.links.netlink import Request
from testbed.links.shaping import netem_limit, shaper, tbf
from testbed.topology.model import Emulator, Shape

RTM_NEWQDISC, RTM_DELQDISC = 36, 37
TC_H_ROOT = 0xFFFFFFFF
TCA_KIND, TCA_OPTIONS = 1, 2


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def read(request: Request) -> tuple[int, tuple[int, ...], dict[int, bytes]]:
    """Message type, (interface, handle, parent), attributes."""
    data = request.encoded(sequence=9)
    length, kind, _, sequence, _ = struct.unpack_from("=IHHII", data)
    assert length <= len(data) <= length + 3
    assert sequence == 9
    _, index, handle, parent, _ = struct.unpack_from("=B3xiIII", data, 16)
    return kind, (index, handle, parent), attributes(data[36:length])


def test_tbf_gets_rate_burst_and_limit_in_bytes() -> None:
    kind, where, found = read(tbf(7, "eth0", rate_bps=80_000, limit=24_000, burst=1600))
    assert kind == RTM_NEWQDISC
    assert where == (7, 0x10000, TC_H_ROOT)
    assert found[TCA_KIND] == b"tbf\0"
    options = attributes(found[TCA_OPTIONS])
    linklayer, rate, limit = struct.unpack_from("=xB6xI12xI", options[1])
    assert (linklayer, rate, limit) == (1, 10_000, 24_000)
    assert len(options[1]) == 36  # struct tc_tbf_qopt
    assert struct.unpack("=Q", options[4]) == (10_000,)
    assert struct.unpack("=I", options[6]) == (1600,)


def test_a_rate_beyond_32_bits_reaches_tbf_whole() -> None:
    _, _, found = read(tbf(7, "eth0", rate_bps=80e9, limit=10**7, burst=10**6))
    assert struct.unpack("=Q", attributes(found[TCA_OPTIONS])[4]) == (10**10,)


def test_netem_gets_all_of_a_shape() -> None:
    shape = Shape(rate_bps=8e6, delay_s=0.05, jitter_s=0.01, loss=0.25, queue_bytes=15_140)
    request = shaper(Emulator.NETEM, 4, "l1", shape, 1500, seed=77)
    kind, where, found = read(request)
    assert kind == RTM_NEWQDISC
    assert where == (4, 0x10000, TC_H_ROOT)
    assert found[TCA_KIND] == b"netem\0"
    latency, limit, loss, gap, duplicate, jitter = struct.unpack_from("=6I", found[TCA_OPTIONS])
    assert (latency, gap, duplicate, jitter) == (0, 0, 0, 0)
    assert limit == netem_limit(shape, 1500) == 50  # 10 frames waiting, 60 ms of the rate under way
    assert loss == round(0.25 * 0xFFFFFFFF)
    more = attributes(found[TCA_OPTIONS][24:])
    assert struct.unpack("=IiIi", more[6]) == (1_000_000, 0, 0, 0)
    assert struct.unpack("=Q", more[8]) == (1_000_000,)
    assert struct.unpack("=q", more[10]) == (50_000_000,)
    assert struct.unpack("=q", more[11]) == (10_000_000,)
    assert struct.unpack("=Q", more[14]) == (77,)


def test_netem_without_a_rate_gets_a_very_high_one_so_that_jitter_keeps_the_order() -> None:
    _, _, found = read(shaper(Emulator.NETEM, 4, "l1", Shape(delay_s=0.1, jitter_s=0.1), 1500))
    assert struct.unpack("=Q", attributes(found[TCA_OPTIONS][24:])[8])[0] > 10**9


def test_a_link_without_limits_gets_no_shaper() -> None:
    for emulator in (Emulator.NETEM, Emulator.TBF):
        kind, _, found = read(shaper(emulator, 4, "l1", Shape(), 1500))
        assert kind == RTM_DELQDISC
        assert TCA_OPTIONS not in found


def test_a_queue_shorter_than_a_frame_is_stretched_to_one_for_tbf() -> None:
    _, _, found = read(shaper(Emulator.TBF, 4, "l1", Shape(rate_bps=8e4, queue_bytes=100), 1500))
    (limit,) = struct.unpack_from("=24xI", attributes(found[TCA_OPTIONS])[1])
    assert limit == 1600
