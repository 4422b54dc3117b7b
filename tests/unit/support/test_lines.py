"""Growing files are read up to the last complete line."""

from pathlib import Path

from support.lines import complete_lines, records


def test_a_line_counts_when_its_newline_is_written(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert complete_lines(path) == []
    path.write_text('{"event": "start"}\n{"event": "st')
    assert complete_lines(path) == ['{"event": "start"}']
    assert records(path) == [{"event": "start"}]
    path.write_text('{"event": "start"}\n{"event": "stop"}\n')
    assert records(path) == [{"event": "start"}, {"event": "stop"}]
