"""The distribution of captures over Spark's tasks."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from analysis.protocols.messages import LinkPlace
from analysis.scan import SMALLEST_SHARE, Job, distribute


def jobs(sizes):
    return [
        Job(Path(f"{n}.pcap"), LinkPlace(str(n), n, n, {}, {}), size)
        for n, size in enumerate(sizes)
    ]


@given(st.lists(st.integers(0, 10 * SMALLEST_SHARE), max_size=30), st.integers(1, 8))
def test_every_part_of_every_file_is_read_exactly_once(sizes, tasks):
    shares = distribute(jobs(sizes), tasks)
    assert len(shares) == tasks
    parts = {}
    for job in (job for share in shares for job in share):
        parts.setdefault(job.path, []).append((job.shard, job.shards))
    assert set(parts) == {Path(f"{n}.pcap") for n in range(len(sizes))}
    for found in parts.values():
        assert sorted(found) == [(n, len(found)) for n in range(len(found))]


def test_the_broker_of_a_star_is_divided_when_it_is_too_big_for_one_task():
    shares = distribute(jobs([100 * SMALLEST_SHARE, *[10 * SMALLEST_SHARE] * 10]), 4)
    loads = [sum(job.size for job in share) for share in shares]
    assert max(loads) < 1.3 * min(loads)


def test_small_files_stay_whole():
    assert all(job.shards == 1 for share in distribute(jobs([1000, 10]), 8) for job in share)
