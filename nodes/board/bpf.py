"""Small programs in the kernel's classic packet filter language (BPF): is this packet of one of these peers?

`tc` takes them as text (cls_bpf), sockets as an array (SO_ATTACH_FILTER). Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, collapse_addresses
from itertools import groupby

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand
Program = tuple[Instruction, ...]

# linux/bpf_common.h: class | size or operation | mode
LOAD_WORD, LOAD_HALF, LOAD_BYTE, LOAD_LENGTH = 0x20, 0x28, 0x30, 0x80
LOAD_HALF_BEHIND_X, X_IS_IP_HEADER_LENGTH = 0x48, 0xB1
ADD, MINUS_X, AND = 0x04, 0x1C, 0x54
JUMP, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT = 0x05, 0x15, 0x35, 0x45
RETURN = 0x06

NETWORK_HEADER = 0xFFF00000  # SKF_NET_OFF: counted from there, whatever stands in front of it
PACKET_TYPE = 0xFFFFF000 + 4  # SKF_AD_OFF + SKF_AD_PKTTYPE
IP_SOURCE, IP_DESTINATION = 12, 16  # places in an IPv4 header
EVERYTHING, NOTHING = 0xFFFFFFFF, 0  # what a program returns
MOST_PEERS = 500  # in one program that goes through tc, whose messages have 16 KiB
_FARTHEST = 255  # instructions a conditional jump can skip
_BLOCK = 200  # comparisons whose common goal is near enough for that


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction whose goals are names; an empty goal is the next instruction."""

    code: int
    operand: int = 0
    then: str = ""
    otherwise: str = ""


def assemble(steps: Iterable[Step | str]) -> Program:
    """Instructions with numbers for goals; a text among the steps names the place of the next one."""
    places: dict[str, int] = {}
    listed: list[Step] = []
    for step in steps:
        if isinstance(step, str):
            places[step] = len(listed)
        else:
            listed.append(step)
    return tuple(_instruction(step, at, places) for at, step in enumerate(listed))


def _instruction(step: Step, at: int, places: dict[str, int]) -> Instruction:
    def distance(goal: str) -> int:
        return places[goal] - at - 1 if goal else 0

    if step.code == JUMP:
        return (JUMP, 0, 0, distance(step.then))
    then, otherwise = distance(step.then), distance(step.otherwise)
    assert 0 <= then <= _FARTHEST
    assert 0 <= otherwise <= _FARTHEST
    return (step.code, then, otherwise, step.operand)


def among(networks: Iterable[IPv4Network], place: int, goal: str) -> Iterator[Step | str]:
    """Go to `goal`, however far, if the address at this place is in one of these networks; else go on."""

    def length(network: IPv4Network) -> int:
        return network.prefixlen

    for prefix_length, group in groupby(sorted(collapse_addresses(networks), key=length), length):
        alike = [int(network.network_address) for network in group]
        yield Step(LOAD_WORD, place)
        if prefix_length < 32:
            yield Step(AND, 0xFFFFFFFF << (32 - prefix_length) & 0xFFFFFFFF)
        for begin in range(0, len(alike), _BLOCK):
            found, behind = (f"{goal} {what} {prefix_length} {begin}" for what in ("yes", "no"))
            yield from (Step(IF_EQUAL, one, found) for one in alike[begin : begin + _BLOCK])
            yield Step(JUMP, then=behind)
            yield found
            yield Step(JUMP, then=goal)
            yield behind


def peers_only(networks: Iterable[IPv4Network], place: int) -> list[Program]:
    """Programs for `tc`: together they take the IPv4 packets whose address at this place is a peer's."""
    single = list(collapse_addresses(networks))
    return [
        assemble(
            [
                *among(single[begin : begin + MOST_PEERS], NETWORK_HEADER + place, "a peer"),
                Step(RETURN, NOTHING),
                "a peer",
                Step(RETURN, EVERYTHING),
            ]
        )
        for begin in range(0, len(single), MOST_PEERS)
    ]


ALL: Program = ((RETURN, 0, 0, EVERYTHING),)


def as_text(program: Sequence[Instruction]) -> str:
    """As `tc ... bpf bytecode` takes it."""
    return ",".join([str(len(program)), *(" ".join(map(str, one)) for one in program)])
