"""The nodes' logs as a table: each line that is a record, once, however the files are divided."""

import json
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs import logs
from analysis.inputs.logs import LOG, LogRange, distribute, parse_block, read_range

NUMBERS = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.fixed_dictionaries(
    {"t": NUMBERS, "node": st.text(), "event": st.sampled_from(["publish", "receive", "note"])},
    optional={
        "id": st.text("0123456789abcdef", min_size=16, max_size=16),
        "priority": st.integers(1, 5),
        "place": st.lists(NUMBERS, max_size=3),
        "hops": st.integers(),  # no column of the table
    },
)
DAMAGED = st.sampled_from(['{"t": 1, "node": "a', "", "null", "[1]", "\x00"])


def as_logged(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: record.get(name) for name in LOG.names} for record in records]


def as_read(tables: list[pa.Table]) -> list[dict[str, Any]]:
    return [row for table in tables for row in table.to_pylist()]


@given(st.lists(st.one_of(RECORDS, DAMAGED), max_size=20))
def test_damaged_lines_are_left_out_and_all_others_kept(
    lines: list[dict[str, Any] | str],
) -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    records = [line for line in lines if isinstance(line, dict)]
    assert parse_block(text.encode()).to_pylist() == as_logged(records)


@given(st.lists(st.text('{}[]":,0nul\\ \t', max_size=12), max_size=4))
def test_nonsense_is_read_as_line_by_line(lines: list[str]) -> None:
    records = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        records += [record] if isinstance(record, dict) else []
    assert parse_block("\n".join(lines).encode()).num_rows == len(records)


def test_a_value_of_another_kind_is_not_known() -> None:
    line = {"t": 1, "node": 5, "priority": "high", "place": [1, "x"], "late_ns": True, "size": 7}
    (row,) = parse_block(json.dumps(line).encode()).to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {"t": 1, "size": 7}


@given(
    st.lists(st.lists(RECORDS, max_size=8), min_size=1, max_size=4),
    st.integers(1, 9),
    st.integers(1, 300),
)
def test_every_record_is_read_once_however_files_are_divided(
    files: list[list[dict[str, Any]]], tasks: int, block: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(logs, "BLOCK_BYTES", block):
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(files))]
        for path, records in zip(paths, files, strict=True):
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        shares = distribute(paths, tasks)
        found = [rows for share in shares for stretch in share for rows in read_range(stretch)]
    assert len(shares) == tasks
    assert as_read(found) == as_logged([record for records in files for record in records])


def test_a_last_line_without_an_end_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "node.jsonl"
    path.write_text('{"t": 1}\n{"t": 2}')
    rows = as_read(list(read_range(LogRange(path, 0, path.stat().st_size))))
    assert [row["t"] for row in rows] == [1, 2]
