"""The bytes that ask the kernel for a shaper, read back with the structures of linux/pkt_sched.h."""

import struct

import pytest

from testbed.links.changes import DirectionState
from testbed.links.netlink import Request
from testbed.links.shaping import shapers, tbf
from testbed.topology.model import Emulator, Shape

RTM_NEWQDISC, RTM_DELQDISC = 36, 37
RTM_NEWTFILTER, RTM_DELTFILTER = 44, 45
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


def only(requests: list[Request]) -> Request:
    (request,) = requests
    return request


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
    outer, inner, *_ = shapers(Emulator.NETEM, 4, "l1", DirectionState(shape), 1500, seed=77)
    assert read(outer)[:2] == (RTM_NEWQDISC, (4, 0x40000, TC_H_ROOT))
    kind, where, found = read(inner)
    assert kind == RTM_NEWQDISC
    assert where == (4, 0x20000, 0x40001)  # in the first band of the outer one
    assert found[TCA_KIND] == b"netem\0"
    latency, limit, loss, gap, duplicate, jitter = struct.unpack_from("=6I", found[TCA_OPTIONS])
    assert (latency, gap, duplicate, jitter) == (0, 0, 0, 0)
    assert limit * 64 > 10**6  # never the one that drops
    assert loss == round(0.25 * 0xFFFFFFFF)
    more = attributes(found[TCA_OPTIONS][24:])
    assert struct.unpack("=IiIi", more[6]) == (1_000_000, 0, 0, 0)
    assert struct.unpack("=Q", more[8]) == (1_000_000,)
    assert struct.unpack("=q", more[10]) == (50_000_000,)
    assert struct.unpack("=q", more[11]) == (10_000_000,)
    assert struct.unpack("=Q", more[14]) == (77,)


def test_the_queue_in_front_of_netem_is_limited_in_bytes() -> None:
    shape = Shape(rate_bps=80_000, queue_bytes=20_000)
    *_, forget, limit = shapers(Emulator.NETEM, 4, "l1", DirectionState(shape), 1500)
    assert read(forget)[0] == RTM_DELTFILTER
    assert read(forget)[1] == read(limit)[1] == (4, 1, 0x40000)
    kind, _, found = read(limit)
    assert kind == RTM_NEWTFILTER
    assert found[TCA_KIND] == b"matchall\0"
    action = attributes(attributes(attributes(found[TCA_OPTIONS])[2])[1])
    assert action[1] == b"police\0"
    police = attributes(action[2])
    assert len(police[1]) == 56  # struct tc_police
    drop, burst, cell_log, linklayer, rate = struct.unpack_from("=4xi4xI4xBB6xI", police[1])
    assert (drop, cell_log, linklayer, rate) == (2, 1, 1, 10_000)
    assert burst * 64 == pytest.approx(
        (20_000 + 1514) / 10_000 * 1e9, abs=64
    )  # and one on the link
    assert len(police[2]) == 1024
    assert struct.unpack("=Q", police[8]) == (10_000,)


def test_netem_without_a_rate_gets_a_very_high_one_so_that_jitter_keeps_the_order() -> None:
    direction = DirectionState(Shape(delay_s=0.1, jitter_s=0.1))
    _, _, found = read(shapers(Emulator.NETEM, 4, "l1", direction, 1500)[1])
    assert struct.unpack("=Q", attributes(found[TCA_OPTIONS][24:])[8])[0] > 10**9


def test_a_link_without_limits_gets_no_shaper() -> None:
    for emulator in (Emulator.NETEM, Emulator.TBF):
        kind, _, found = read(only(shapers(emulator, 4, "l1", DirectionState(Shape()), 1500)))
        assert kind == RTM_DELQDISC
        assert TCA_OPTIONS not in found


def test_a_queue_shorter_than_a_frame_is_stretched_to_one_for_tbf() -> None:
    direction = DirectionState(Shape(rate_bps=8e4, queue_bytes=100))
    _, _, found = read(only(shapers(Emulator.TBF, 4, "l1", direction, 1500)))
    (limit,) = struct.unpack_from("=24xI", attributes(found[TCA_OPTIONS])[1])
    assert limit == 1600


def test_a_cut_direction_gets_a_hole_whatever_its_shape() -> None:
    for emulator in (Emulator.NETEM, Emulator.TBF):
        for shape in (Shape(), Shape(rate_bps=8e4)):
            kind, (_, handle, parent), found = read(
                only(shapers(emulator, 4, "l1", DirectionState(shape, cut=True), 1500))
            )
            assert kind == RTM_NEWQDISC
            assert parent == TC_H_ROOT
            assert found[TCA_KIND] == b"blackhole\0"
            shaped = read(shapers(emulator, 4, "l1", DirectionState(Shape(rate_bps=8e4)), 1500)[0])
            assert handle != shaped[1][1]  # the kernel makes no other kind of one that is there
