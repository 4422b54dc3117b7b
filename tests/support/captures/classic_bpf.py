"""A slow, plain evaluator of classic BPF programs, to check our filters against.

It is written from the kernel's description of the language (Documentation/networking/filter.rst).
"""

from collections.abc import Sequence

Instruction = tuple[int, int, int, int]

_NETWORK_HEADER = -0x100000
_ANCILLARY = -0x1000
_PACKET_TYPE = 4
_SIZES = {0x00: 4, 0x08: 2, 0x10: 1}
_WORD = 0xFFFFFFFF


class OutOfFrame(Exception):
    """A load beyond the end of the frame: the kernel ends the program and drops the packet."""


def run(
    program: Sequence[Instruction], frame: bytes, *, packet_type: int = 0, network_header: int = 14
) -> int:
    """The value that the program returns for this frame."""
    try:
        return _run(program, frame, packet_type, network_header)
    except OutOfFrame:
        return 0


def _run(program: Sequence[Instruction], frame: bytes, packet_type: int, header: int) -> int:
    a = x = at = 0

    def load(place: int, size: int) -> int:
        if place - (1 << 32) >= _ANCILLARY:
            assert place - (1 << 32) - _ANCILLARY == _PACKET_TYPE
            return packet_type
        if place - (1 << 32) >= _NETWORK_HEADER:
            place = place - (1 << 32) - _NETWORK_HEADER + header
        if place + size > len(frame):
            raise OutOfFrame
        return int.from_bytes(frame[place : place + size], "big")

    while True:
        code, then, otherwise, k = program[at]
        at += 1
        match code & 0x07, code & 0xF8:
            case 0, mode if mode & 0xE0 == 0x20:
                a = load(k, _SIZES[mode & 0x18])
            case 0, mode if mode & 0xE0 == 0x40:
                a = load(x + k, _SIZES[mode & 0x18])
            case 0, 0x80:
                a = len(frame)
            case 0, 0x00:
                a = k
            case 1, 0xB0:
                x = 4 * (load(k, 1) & 0xF)
            case 1, 0x00:
                x = k
            case 4, operation:
                operand = x if operation & 0x08 else k
                a = {
                    0x00: a + operand,
                    0x10: a - operand,
                    0x50: a & operand,
                }[operation & 0xF0] & _WORD
            case 5, 0x00:
                at += k
            case 5, operation:
                operand = x if operation & 0x08 else k
                holds = {
                    0x10: a == operand,
                    0x20: a > operand,
                    0x30: a >= operand,
                    0x40: bool(a & operand),
                }[operation & 0xF0]
                at += then if holds else otherwise
            case 6, 0x00:
                return k
            case other:
                raise AssertionError(f"unknown instruction {other}")
