"""System calls that Python 3.11 lacks, by ctypes; errors become OSError as in `os`."""

import ctypes
import os
import signal
from contextlib import suppress

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_PR_SET_CHILD_SUBREAPER = 36
_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


def _checked(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move this process into new namespaces of these kinds."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Enter the namespace behind the descriptor."""
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def _prctl(option: int, value: int) -> None:
    _checked(
        _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), 0, 0, 0),
        "prctl",
    )


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends; exit at once if the parent has ended."""
    end_with_parent(parent, signal.SIGKILL)


def end_with_parent(parent: int, by: signal.Signals) -> None:
    """The same with a signal that the process can handle."""
    _prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper() -> None:
    """Descendants of this process whose parent ends become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def disable_timer_slack() -> None:
    """Let the timers of this process fire without the usual slack of 50 microseconds."""
    _prctl(_PR_SET_TIMERSLACK, 1)


def use_realtime_priority() -> None:
    """Set a real-time priority; the kernel reserves 5 % of the time for other processes.

    Without root the priority stays as it is.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Timer:
    """A timer of the monotonic clock that epoll can wait for, precise to microseconds (epoll alone: to 1 ms)."""

    def __init__(self) -> None:
        self.fd = _checked(
            _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC), "timerfd_create"
        )

    def set(self, at_ns: int | None) -> None:
        """Fire at this moment of time.monotonic_ns(), even if it is past; None: not at all."""
        at = 0 if at_ns is None else max(at_ns, 1)
        when = _Itimerspec(_Timespec(0, 0), _Timespec(at // 10**9, at % 10**9))
        _checked(
            _libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(when), None),
            "timerfd_settime",
        )

    def clear(self) -> None:
        """Acknowledge that the timer has fired."""
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self.fd)
