"""Link utilization over time, compared with counting packet by packet."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.packets import parse
from analysis.metrics.link_utilization import count_utilization
from analysis.protocols.link import read_link
from analysis.protocols.messages import LinkPlace
from support.runs.star_runs import MS, START_NS, Captures, Host, packet

GAUGE, BROKER = Host("gauge", 2, "10.77.0.2"), Host("broker", 1, "10.77.0.1")
PLACE = LinkPlace("gauge", 0x0A4D0002, int.from_bytes(GAUGE.mac), {}, {})
passing = st.tuples(st.booleans(), st.integers(-3_000, 6_000), st.integers(0, 1460))


@settings(max_examples=60)
@given(st.lists(passing, max_size=30), st.sampled_from([100, 1_000, 1_700]))
def test_each_packet_counts_in_the_unit_and_direction_in_which_it_passed(passed, unit_ms):
    captures = Captures()
    expected: Counter[tuple[str, int]] = Counter()
    for up, at_ms, size in passed:
        ends = (GAUGE, BROKER) if up else (BROKER, GAUGE)
        data = packet(*ends, (40000, 8765), 1, 1, 0x10, bytes(size))
        captures.add("gauge", START_NS + at_ms * MS, data)
        begin_ms = at_ms // unit_ms * unit_ms
        expected["up" if up else "down", START_NS + begin_ms * MS] += len(data)
    packets = parse(captures.pcap("gauge"))
    rows = count_utilization(packets, PLACE, unit_ms * MS, START_NS).to_pylist()
    assert {(row["direction"], row["from_ns"]): row["bytes"] for row in rows} == expected
    _, totals, *_ = read_link(packets, PLACE)
    for total in totals.to_pylist():
        mine = [row for row in rows if row["direction"] == total["direction"]]
        assert sum(row["bytes"] for row in mine) == total["wire_bytes"]
        assert sum(row["packets"] for row in mine) == total["packets"]
