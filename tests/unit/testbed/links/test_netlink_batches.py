"""Batches of requests against a kernel that is played by a socket pair."""

import errno
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from testbed.links.netlink import Netlink, NetlinkError, Request
from testbed.links.requests import delete_link, raise_link

HEADER = struct.Struct("=IHHII")


@contextmanager
def kernel(refuse: Callable[[int], int]) -> Iterator[tuple[Netlink, list[int]]]:
    """Acknowledge each request with the errno that `refuse` returns; yield the sequence numbers that arrived, too."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    seen: list[int] = []

    def answer() -> None:
        while data := theirs.recv(1 << 20):
            place, answers = 0, []
            while place < len(data):
                length, _, flags, sequence, _ = HEADER.unpack_from(data, place)
                assert flags & 0x05 == 0x05  # request, with acknowledgement
                seen.append(sequence)
                answers.append(
                    HEADER.pack(20, 2, 0, sequence, 0) + struct.pack("=i", -refuse(sequence))
                )
                place += (length + 3) & ~3
            theirs.send(b"".join(answers[:10]))
            for rest in answers[10:]:
                theirs.send(rest)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield Netlink(ours), seen
    finally:
        ours.close()
        thread.join()
        theirs.close()


def raising(count: int) -> list[Request]:
    return [raise_link(f"l{number}") for number in range(count)]


def test_hundreds_of_requests_are_all_acknowledged() -> None:
    with kernel(lambda _: 0) as (netlink, seen):
        netlink.do(raising(300))
    assert seen == list(range(1, 301))


def test_the_first_refusal_is_reported_with_what_was_wanted() -> None:
    with (
        kernel(lambda sequence: errno.EPERM if sequence >= 3 else 0) as (netlink, seen),
        pytest.raises(NetlinkError, match="cannot raise l2: Operation not permitted") as refused,
    ):
        netlink.do(raising(5))
    assert refused.value.number == errno.EPERM
    assert len(seen) == 5


def test_removing_a_link_that_is_gone_is_no_error() -> None:
    with kernel(lambda _: errno.ENODEV) as (netlink, _):
        netlink.do([delete_link("l1")])
