"""An interrupt that Python drops, because it came while an object was tidied up, still ends the command."""

import subprocess
import sys

PROGRAM = """
import os, signal, time
from testbed.cli import app as commands

class Tidied:
    def __del__(self):
        os.kill(os.getpid(), signal.{signal})
        for _ in range(1000):  # where the handler raises, and Python drops what it raised
            pass

def command(standalone_mode):
    Tidied()
    time.sleep({seconds})
    return 0

commands.app = command
commands.main()
"""


def exit_code(signal: str, seconds: float) -> int:
    program = PROGRAM.format(signal=signal, seconds=seconds)
    return subprocess.run([sys.executable, "-c", program], check=False, timeout=240).returncode


def test_a_dropped_interrupt_is_sent_again_while_the_command_runs() -> None:
    assert exit_code("SIGINT", 200) == 130
    assert exit_code("SIGTERM", 200) == 130


def test_a_dropped_interrupt_counts_even_if_the_command_has_just_ended() -> None:
    assert exit_code("SIGINT", 0) == 130
