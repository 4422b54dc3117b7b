"""The made-up run of `benchmarks.chain` has the promised packets, and every message reaches every subscriber."""

import os
import subprocess
import sys

from analysis.captures.packets import read
from analysis.live.run import WatchedRun
from benchmarks.chain import _held
from benchmarks.support.captures.run_folder import DELAY_NS, PACKETS_EACH, SUBSCRIBERS, write_run


def test_a_big_run_holds_the_packets_and_deliveries_that_were_asked_for(tmp_path):
    published = write_run(tmp_path / "big", 4000)
    folder = tmp_path / "big" / "run"
    assert published == 4000 // PACKETS_EACH
    counts = {path.stem: len(read(path)) for path in (folder / "pcap").iterdir()}
    openings = 2 * (len(counts) - 1)  # each connection's first packet, on both links
    assert sum(counts.values()) == 4000 + openings
    assert counts["broker"] == sum(counts.values()) / 2
    watched = WatchedRun(folder)
    watched.look(final=True)
    (level,) = watched.levels(0, 0.0)
    assert (level.published, level.delivered) == (published, published * SUBSCRIBERS)
    assert level.p50 == level.max == (4 * DELAY_NS + 500_000) / 1e9


def test_memory_is_that_of_a_process_and_of_those_it_has_started():
    program = (
        "b = bytearray(80 << 20); b[::4096] = bytes(len(b[::4096])); print(flush=True); input()"
    )
    alone = _held(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert _held(os.getpid()) > alone + (70 << 20)
        pid = child.pid
        child.communicate(b"\n")
    assert _held(pid) is None
