"""Boards with wrong clocks play in time, and are recorded in time."""

from pathlib import Path

from testbed.lab.run_record import MIN_OFFSET_NS, clock_offsets
from testbed.places import RunPlace


def test_the_first_comparison_of_a_board_counts_and_small_offsets_do_not(tmp_path: Path) -> None:
    run = RunPlace(tmp_path)
    assert clock_offsets(run) == {}
    (tmp_path / "clocks.jsonl").write_text(
        '{"node": "siren", "offset_ns": 3000000000, "error_ns": 5}\n'
        '{"node": "siren", "offset_ns": 3000001000, "error_ns": 5}\n'
        f'{{"node": "slope", "offset_ns": {MIN_OFFSET_NS}, "error_ns": 5}}\n'
        '{"node": "broker", "offset_ns": -70000000, "err'
    )
    assert clock_offsets(run) == {"siren": 3_000_000_000}
