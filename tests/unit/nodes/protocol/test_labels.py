"""Golden bytes of every label, and what the receiving side refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.delivery import METHODS
from nodes.delivery.base import Assembler, Chunk
from nodes.protocol.labels import BITS, DmpqLabel, Form, form_and_level, levelled
from nodes.protocol.wire import MAX_MESSAGE_BYTES, VERSION


def sent(
    method: str, parameters: dict[str, object], *offers: tuple[bytes, int]
) -> list[tuple[bytes, int]]:
    """The chunks of these messages, over a link that is always free."""
    scheduler = METHODS[method].scheduler(parameters)
    scheduler.on_link_up(1444, 0.0)
    for data, level in offers:
        assert scheduler.offer(data, level, 0.0) == ()
    chunks = []
    while (chunk := scheduler.next_chunk(0.0)) is not None:
        chunks.append((chunk.data, chunk.bits))
        scheduler.on_progress(0, 0.0)
    return chunks


def test_the_labels_of_the_thesis_as_a_byte() -> None:
    assert sent("dmpq-pc", {"dv": 4}, (b"12345678", 1), (b"abc", 2), (b"ALARM", 5), (b"go", 4)) == [
        (b"cALAR", 0),
        (b"dM", 0),
        (b"Ago", 0),
        (b"Babc", 0),
        (b"C1234", 0),
        (b"D5678", 0),
    ]


def test_the_labels_of_the_thesis_in_the_reserved_bits() -> None:
    parameters: dict[str, object] = {"dv": 4, "label": "opcode"}
    assert sent(
        "dmpq-pc", parameters, (b"12345678", 1), (b"abc", 2), (b"ALARM", 5), (b"go", 4)
    ) == [
        (b"ALAR", 0b101),
        (b"M", 0b111),
        (b"go", 0b000),
        (b"abc", 0b010),
        (b"1234", 0b100),
        (b"5678", 0b110),
    ]


def test_our_own_labels() -> None:
    offers = ((b"12345678", 1), (b"a", 2), (b"bc", 2), (b"d", 3), (b"ALARM", 5))
    assert sent("preemptive", {"dv": 6}, *offers) == [
        (b"\x85ALARM", 0),
        (b"\x83d", 0),
        (b"\x82a", 0),
        (b"\x82bc", 0),
        (b"\x89123456", 0),
        (b"\x9178", 0),
    ]
    assert sent("preemptive", {}, (b"a", 2), (b"bc", 2)) == [(b"\x9a\x00\x01a\x00\x02bc", 0)]


def test_no_label_looks_like_a_message_without_one() -> None:
    ours = {levelled(form, level) for form in Form for level in range(1, 6)}
    assert len(ours) == 20
    assert VERSION not in ours | set(DmpqLabel)
    assert len(set(BITS.values())) == len(DmpqLabel)
    assert [label for label in range(256) if label in ours] == [
        label for label in range(256) if _is_ours(label)
    ]


def _is_ours(label: int) -> bool:
    try:
        form, level = form_and_level(label)
    except ValueError:
        return False
    return levelled(form, level) == label


def assembler(method: str, **parameters: object) -> Assembler:
    return METHODS[method].assembler(parameters)


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([b""], "an empty chunk"),
        ([b"X1"], "no label of dmpq-pc: 0x58"),
        ([b"\x01"], "no label of dmpq-pc: 0x01"),
        ([b"C"], "an empty piece of a standard message"),
        ([b"D1"], "the last piece of a standard message came without a first one"),
        ([b"d1"], "the last piece of an urgent message came without a first one"),
        ([b"C1", b"d2"], "the last piece of an urgent message came without a first one"),
        ([b"C1", b"B2"], "a whole message came between the pieces of a standard message"),
        ([b"C1", b"D2", b"D3"], "came without a first one"),
    ],
)
def test_dmpq_pc_refuses_impossible_chunks(chunks: list[bytes], reason: str) -> None:
    joining = assembler("dmpq-pc")
    for data in chunks[:-1]:
        joining.on_chunk(Chunk(data))
    with pytest.raises(ValueError, match=reason):
        joining.on_chunk(Chunk(chunks[-1]))


def test_dmpq_pc_refuses_bits_that_are_no_label() -> None:
    with pytest.raises(ValueError, match="no label of dmpq-pc in the reserved bits: 011"):
        assembler("dmpq-pc", label="opcode").on_chunk(Chunk(b"x", 0b011))


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([b""], "an empty chunk"),
        ([b"\x05x"], "no label of preemptive: 0x05"),
        ([b"\x80x"], "no label of preemptive: 0x80"),
        ([b"\x86x"], "no label of preemptive: 0x86"),
        ([b"\xa1x"], "no label of preemptive: 0xa1"),
        ([b"\x8a"], "an empty piece of a message of level 2"),
        ([b"\x92x"], "the last piece of a message of level 2 came without a first one"),
        ([b"\x8ax", b"\x91x"], "the last piece of a message of level 1 came without"),
        ([b"\x8ax", b"\x82x"], "a whole message came between the pieces of a message of level 2"),
        ([b"\x8ax", b"\x9a\0\1x"], "a whole message came between the pieces of a message of level"),
        ([b"\x9d\0\1x"], "several messages of level 5"),
        ([b"\x9a"], "without any"),
        ([b"\x9a\0"], "lengths of several messages in one chunk are wrong"),
        ([b"\x9a\0\0"], "lengths of several messages in one chunk are wrong"),
        ([b"\x9a\0\2x"], "lengths of several messages in one chunk are wrong"),
    ],
)
def test_preemptive_refuses_impossible_chunks(chunks: list[bytes], reason: str) -> None:
    sorting = assembler("preemptive")
    for data in chunks[:-1]:
        sorting.on_chunk(Chunk(data))
    with pytest.raises(ValueError, match=reason):
        sorting.on_chunk(Chunk(chunks[-1]))


def test_messages_of_all_levels_may_be_mixed_and_control_comes_between() -> None:
    sorting = assembler("preemptive")
    chunks = [b"\x89a", b"\x8db", b"\x8ac", b"\x85control", b"\x95B", b"\x91A", b"\x92C"]
    arrived = [sorting.on_chunk(Chunk(data)) for data in chunks]
    assert arrived == [[], [], [], [b"control"], [b"bB"], [b"aA"], [b"cC"]]


@pytest.mark.parametrize(("method", "label"), [("dmpq-pc", b"C"), ("preemptive", b"\x89")])
def test_pieces_without_end_are_refused_at_the_length_of_the_longest_message(
    method: str, label: bytes
) -> None:
    receiving = assembler(method)
    piece = Chunk(label + bytes(1_000_000))
    for _ in range(MAX_MESSAGE_BYTES // 1_000_000):
        assert receiving.on_chunk(piece) == []
    with pytest.raises(ValueError, match=f"more than {MAX_MESSAGE_BYTES} bytes together"):
        receiving.on_chunk(piece)


labels = st.sampled_from(
    [*DmpqLabel, *(levelled(form, level) for form in Form for level in (1, 5))]
)
hostile = st.builds(lambda label, rest: bytes((label,)) + rest, labels, st.binary(max_size=8))


@pytest.mark.parametrize("method", METHODS)
@given(chunks=st.lists(st.tuples(hostile | st.binary(max_size=8), st.integers(0, 7)), max_size=30))
@settings(deadline=None)
def test_any_chunk_is_accepted_or_refused_with_a_sentence(
    method: str, chunks: list[tuple[bytes, int]]
) -> None:
    for parameters in ({}, {"label": "opcode"}) if method == "dmpq-pc" else ({},):
        receiving = METHODS[method].assembler(parameters)
        taken = given_on = 0
        reason = "nothing was wrong"
        for data, bits in chunks:
            try:
                messages = receiving.on_chunk(Chunk(data, bits))
            except ValueError as error:
                reason = str(error)
                break
            taken += len(data)
            given_on += sum(map(len, messages))
            assert given_on <= taken, "nothing comes out that did not come in"
        assert " " in reason
