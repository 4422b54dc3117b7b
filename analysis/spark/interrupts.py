"""Ctrl-C and SIGTERM: deferred while Java cannot be ended yet, and never lost."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_S = 0.05  # seconds until a lost interrupt is sent again


@contextmanager
def deferred() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM to the end of the block: until Java is known, it could not be ended.

    Python delivers signals to the main thread only; in any other thread there is nothing to defer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in usual:
        signal.signal(number, lambda which, _frame: noted.append(which))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    if noted:
        raise KeyboardInterrupt


@contextmanager
def never_lost() -> Iterator[None]:
    """Send an interrupt again that Python drops inside the block.

    Python drops an interrupt that arrives while an object is finalized, because a finalizer cannot raise; and the
    bridge to Java finalizes objects after each response.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual, lost = sys.unraisablehook, list[threading.Timer]()

    def resend_lost(unraisable: Any) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            usual(unraisable)
            return
        again = threading.Timer(AGAIN_S, _interrupt_main)
        again.daemon = True
        lost.append(again)
        again.start()

    sys.unraisablehook = resend_lost
    try:
        yield
    finally:
        sys.unraisablehook = usual
        pending = [again for again in lost if not again.finished.is_set()]
        for again in pending:
            again.cancel()
    if pending:
        raise KeyboardInterrupt


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)
