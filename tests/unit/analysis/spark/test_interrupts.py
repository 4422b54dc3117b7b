"""An interrupt takes effect once, at whatever moment it arrives."""

import os
import signal
import time
import weakref
from collections.abc import Callable

import pytest

from analysis.spark import interrupts

WAIT_S = 60.0


class Dear:
    """Something that is missed when it goes."""


def interrupt(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # Python notices a signal between two of its steps


def tidied_up(by: Callable[..., None]) -> None:
    dear = Dear()
    gone = weakref.ref(dear, by)
    del dear
    assert gone() is None


def test_an_interrupt_while_an_object_is_tidied_up_comes_again() -> None:
    def wait_uninterrupted() -> None:
        tidied_up(interrupt)
        time.sleep(WAIT_S)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupts.never_lost():
        wait_uninterrupted()
    assert time.monotonic() - begun < WAIT_S


def test_an_interrupt_that_was_dropped_at_the_very_end_is_not_forgotten() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.never_lost():
        tidied_up(interrupt)


def test_other_errors_of_a_finalizer_are_reported_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda what: reported.append(what.exc_type))

    def fail(_: object) -> None:
        raise LookupError

    with interrupts.never_lost():
        tidied_up(fail)
    tidied_up(fail)
    assert reported == [LookupError, LookupError]


def test_interrupts_that_are_put_off_take_effect_once_at_the_end() -> None:
    done = []

    def work_on() -> None:
        for _ in range(2):
            interrupt()
        done.append("all")

    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        work_on()
    assert done == ["all"]
