"""`python3 -m nodes board clock | sums | read`, as they are called over SSH."""

import json
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest


def board(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "nodes", "board", *map(str, arguments)],
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_the_clock_answers_each_line_at_once() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "nodes", "board", "clock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin
        assert process.stdout
        for _ in range(3):
            before = time.time_ns()
            process.stdin.write(b"?\n")
            assert before <= int(process.stdout.readline()) <= time.time_ns()
        process.stdin.close()
        assert process.wait(30) == 0


def test_sums_of_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(b"{}\n" * 50_000)
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    done = board("sums", tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout) == [
        {"file": name, "size": len(data), "sha256": sha256(data).hexdigest()}
        for name, data in (("a", b""), ("b.jsonl", b"{}\n" * 50_000))
    ]


@pytest.mark.parametrize(("offset", "size"), [(0, 200_000), (65_536, 134_464), (200_000, 0), (300_000, 0)])  # fmt: skip
def test_read_gives_the_bytes_from_there_on(tmp_path: Path, offset: int, size: int) -> None:
    data = bytes(range(250)) * 800
    (tmp_path / "capture.pcap").write_bytes(data)
    done = board("read", tmp_path / "capture.pcap", str(offset))
    assert (done.returncode, len(done.stdout)) == (0, size)
    assert done.stdout == data[offset:]


def test_a_reader_that_stops_reading_sees_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1 << 22))
    with subprocess.Popen(
        [sys.executable, "-m", "nodes", "board", "read", str(tmp_path / "big"), "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "usage: python3 nodes.pyz board shape"),
        (("read", "x"), 2, "usage:"),
        (("read", "x", "-1"), 2, "usage:"),
        (("shape", "/none/links.json"), 2, "/none/links.json cannot be read: No such file"),
        (("sums", "/none"), 1, "/none cannot be read: No such file"),
        (("read", "/none", "0"), 1, "/none cannot be read: No such file"),
    ],
)
def test_errors_are_sentences(arguments: tuple[str, ...], code: int, sentence: str) -> None:
    done = board(*arguments)
    assert done.returncode == code
    assert done.stderr.decode().startswith(sentence)
    assert not done.stdout
