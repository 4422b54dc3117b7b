"""Descriptors beyond what select() knows: a lab of hundreds of links keeps three of them open for each."""

import fcntl
import os

_SELECT_REACH = 1024  # scapy's constructors call select(), which knows no descriptor beyond


def lift(descriptor: int) -> int:
    """The same open file under a number beyond select()'s reach, so that what is opened next stays within it."""
    try:
        lifted = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _SELECT_REACH)
    except OSError:  # the limit of open files is that low; then no number goes beyond
        return descriptor
    os.close(descriptor)
    return lifted
