"""A pcap file as columns, compared with scapy's reading of the same bytes."""

import io
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.all import ARP, IP, TCP, UDP, Dot1Q, Ether, RawPcapReader, raw

from analysis.captures.packets import PACKET_SCHEMA, as_table, check_file, parse, read, read_windows
from analysis.errors import AnalysisError
from support.runs.star_runs import MS, START_NS, Captures, Host, arp, packet

ONE = Host("one", 1, "10.77.0.1")
TWO = Host("two", 2, "10.77.0.2")

packets = st.lists(
    st.tuples(
        st.integers(0, 10**12),
        st.one_of(
            st.builds(
                lambda seq, flags, payload: packet(ONE, TWO, (40000, 8765), seq, 7, flags, payload),
                st.integers(0, 2**32 - 1),
                st.integers(0, 63),
                st.binary(max_size=80),
            ),
            st.just(arp(ONE)),
            st.binary(min_size=0, max_size=70),
        ),
    ),
    max_size=12,
)


def captured(records: list[tuple[int, bytes]]) -> Captures:
    captures = Captures()
    for after, data in records:
        captures.add("one", START_NS + after, data)
    return captures


@given(packets, st.sampled_from("<>"), st.booleans(), st.sampled_from([30, 60, 65535]))
def test_every_kind_of_pcap_file_gives_the_packets_that_scapy_reads(records, order, nano, snaplen):
    data = captured(records).pcap("one", order, nano, snaplen)
    found = parse(data)
    expected = list(RawPcapReader(io.BytesIO(data)))
    unit = 1 if nano else 1000
    assert found.ts_ns.tolist() == [m.sec * 10**9 + m.usec * unit for _, m in expected]
    assert found.caplen.tolist() == [m.caplen for _, m in expected]
    assert found.wirelen.tolist() == [m.wirelen for _, m in expected]
    assert found.lost_bytes == 0


@given(packets)
def test_tcp_fields_are_those_that_scapy_sees(records):
    found = parse(captured(records).pcap("one"))
    ordered = [data for _, data in sorted(records, key=lambda record: record[0])]
    for number, data in enumerate(ordered):
        if not found.is_tcp[number]:
            continue
        seen = Ether(data)
        assert found.seq[number] == seen[TCP].seq
        assert found.flags[number] == int(seen[TCP].flags) & 0xFF
        assert (found.src_port[number], found.dst_port[number]) == (
            seen[TCP].sport,
            seen[TCP].dport,
        )
        begin = found.payload_at[number]
        size = seen[IP].len - seen[IP].ihl * 4 - seen[TCP].dataofs * 4
        assert found.payload_len[number] == size
        payload = found.data[begin : begin + found.payload_seen[number]]
        assert payload == bytes(seen[TCP].payload)[:size]


@given(packets, st.integers(1, 200))
def test_a_file_cut_at_any_place_keeps_its_whole_packets_and_counts_the_rest(records, cut):
    whole = captured(records).pcap("one")
    data = whole[: max(0, len(whole) - cut)]
    found = parse(data)
    everything = parse(whole)
    assert len(found) <= len(everything)
    assert found.ts_ns.tolist() == everything.ts_ns.tolist()[: len(found)]
    kept = 24 + int(found.caplen.sum()) + 16 * len(found) if len(data) >= 24 else 0
    assert kept + found.lost_bytes == len(data)


def test_ip_and_tcp_options_move_the_payload():
    data = raw(
        Ether()
        / IP(src="10.0.0.1", dst="10.0.0.2", options=b"\x01\x01\x01\x01")
        / TCP(sport=1, dport=2, options=[("Timestamp", (1, 2))])
        / b"hello"
    )
    found = parse(captured([(0, data)]).pcap("one"))
    begin = found.payload_at[0]
    assert found.data[begin : begin + found.payload_len[0]] == b"hello"


def test_padding_of_short_frames_is_not_payload():
    data = packet(ONE, TWO, (1, 2), 3, 4, 0x10, b"") + bytes(6)
    found = parse(captured([(0, data)]).pcap("one"))
    assert found.payload_len.tolist() == [0]
    assert found.wirelen.tolist() == [60]


def test_parts_of_a_divided_ip_packet_and_other_protocols_are_not_taken_for_tcp():
    parts = [
        raw(Ether() / IP(frag=10) / TCP()),
        raw(Ether() / IP(flags="MF") / TCP()),
        raw(Ether() / IP() / UDP()),
        raw(Ether() / ARP()),
    ]
    found = parse(captured([(n, data) for n, data in enumerate(parts)]).pcap("one"))
    assert found.is_tcp.tolist() == [False] * 4


def test_a_table_of_packets_has_the_declared_schema():
    table = as_table(parse(captured([(0, arp(ONE))]).pcap("one")), "one")
    assert table.schema == PACKET_SCHEMA
    assert table["link"].to_pylist() == ["one"]
    assert table["eth_type"] == pa.chunked_array([[0x0806]], pa.int32())


def test_an_empty_file_has_no_packets():
    assert len(parse(b"")) == 0


def test_a_record_that_claims_an_absurd_length_ends_the_file():
    good = captured([(0, arp(ONE))]).pcap("one")
    found = parse(good + struct.pack("<IIII", 1, 1, 2**31, 2**31) + bytes(100))
    assert (len(found), found.lost_bytes) == (1, 116)


def test_packets_behind_garbage_are_found_again():
    good = captured([(number, arp(ONE)) for number in range(5)]).pcap("one")
    found = parse(good + b"garbage" * 30 + good[24:])
    assert (len(found), found.lost_bytes) == (10, 210)


def test_packets_in_a_vlan_are_read_too():
    data = raw(Ether() / Dot1Q(vlan=5) / IP(src="10.0.0.1") / TCP(dport=8765) / b"hello")
    found = parse(captured([(0, data)]).pcap("one"))
    assert (found.is_tcp[0], found.dst_port[0], found.payload_len[0]) == (True, 8765, 5)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (bytes.fromhex("0a0d0d0a") + bytes(20), "not a pcap file"),
        (struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113), "link type 113"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_a_next_step(tmp_path, head, message):
    path = tmp_path / "x.pcap"
    path.write_bytes(head)
    with pytest.raises(AnalysisError, match=message) as error:
        check_file(path)
    assert error.value.hint


@settings(max_examples=40)
@given(
    st.lists(st.binary(min_size=1, max_size=200), max_size=12),
    st.binary(max_size=60),
    st.integers(1, 900),
)
def test_a_file_in_windows_has_the_same_packets(tmp_path_factory, contents, garbage, window):
    """This holds for windows of any size and with garbage in the file; payloads keep their positions."""
    captures = Captures()
    for number, content in enumerate(contents):
        data = packet(ONE, TWO, (1, 2), number, 0, 0x18, content)
        captures.add("a", START_NS + number * MS, data)
    path = tmp_path_factory.mktemp("windows") / "a.pcap"
    path.write_bytes(captures.pcap("a") + garbage)
    whole, parts = read(path), list(read_windows(path, window))
    tables = [as_table(part, "a") for part in parts]
    assert pa.concat_tables(tables).equals(as_table(whole, "a"))
    assert sum(part.lost_bytes for part in parts) == whole.lost_bytes
    found = [
        part.data[at : at + size]
        for part in parts
        for at, size in zip(part.payload_at.tolist(), part.payload_seen.tolist(), strict=True)
    ]
    assert found == contents
