"""Hostile files: each gives one clear error, soon, in little memory."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.topology import TopologyErrors, load, load_text

SOON_S = 20.0  # of processor time; usually about one, the margin is for slow machines and coverage

BOMB = "a: &a [x, x]\n" + "".join(
    f"b{i}: &b{i} [*{'a' if i == 0 else f'b{i - 1}'}, *{'a' if i == 0 else f'b{i - 1}'}]\n"
    for i in range(40)
)
NODES = "nodes: {broker: {kind: broker}}\n"
GROUP = "groups: {g: {kind: sensor, count: 4999}}\n" + NODES


def many_events(selector: Callable[[int], str]) -> str:
    """A scenario of 560 events with 100 selectors each."""
    events = [
        f"  - {{at: 0s, publish: {{from: [{', '.join(selector(100 * event + i) for i in range(100))}], "
        "topic: x, size: 1B}}\n"
        for event in range(560)
    ]
    return "scenario:\n  duration: 1s\n  events:\n" + "".join(events)


def refused(action: Callable[[], object]) -> TopologyErrors:
    begin = time.process_time()
    with pytest.raises(TopologyErrors) as caught:
        action()
    assert time.process_time() - begin < SOON_S
    error = caught.value
    assert error.exit_code == 2
    assert len(str(error)) < 100_000
    assert all(problem.message for problem in error.problems)
    return error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("# nothing\n", "empty", id="comment only"),
        pytest.param("\0", "binary", id="nul"),
        pytest.param(BOMB, "not allowed", id="alias bomb"),
        pytest.param("a: " + "[" * 1_000_000, "levels deep", id="brackets"),
        pytest.param("- " * 500_000, "levels deep", id="dashes"),
        pytest.param("? " * 500_000, "plain word", id="question marks"),
        pytest.param("{a: " * 200_000, "levels deep", id="braces"),
        pytest.param("[" + "a," * 500_000, "60,000 values", id="many values"),
        pytest.param("".join(f"k{i}: 1\n" for i in range(50_000)), "unknown key", id="many keys"),
        pytest.param("x: 1\n" * 200_000, "twice", id="one key many times"),
        pytest.param("x" * 1_000_000, "mapping", id="one word"),
        pytest.param("a: \x1b[31m\n", "control character", id="escape sequence"),
        pytest.param("a: \ud800\n", "control character (U+D800)", id="surrogate"),
        pytest.param("name: !!python/object/apply:os.system [x]\n", "tags", id="python tag"),
        pytest.param("groups: {g: {kind: sensor, count: 1000000000}}", "out of range", id="count"),
        pytest.param("seed: " + "9" * 100_000, "whole number", id="digits"),
        pytest.param("a" * 2_000_000, "KiB", id="too long"),
        pytest.param(
            GROUP
            + "scenario:\n  duration: 1s\n  events:\n"
            + "  - {at: 0s, publish: {from: 'g[*]', topic: x, size: 1B}}\n" * 7_000,
            "1,000,000 messages",
            id="many events",
        ),
        pytest.param(
            GROUP
            + "scenario:\n  duration: 1s\n  events:\n"
            + "  - {at: 0s, publish: {from: [h0, h1, h2, h3], topic: x, size: 1B}}\n" * 5_000,
            "no node",
            id="many wrong selectors",
        ),
        pytest.param(
            NODES
            + "groups:\n"
            + "".join(f"  g{i}: {{kind: sensr, count: 1}}\n" for i in range(15_000)),
            "no kind",
            id="many wrong kinds",
        ),
        pytest.param(
            "groups: {g: {kind: sensor, count: x}}\n"
            + NODES
            + many_events(lambda _: "'g[0..4998]'"),
            "whole number",
            id="many members of a group whose count is wrong",
        ),
        pytest.param(
            GROUP + many_events(lambda i: f"'g[{i % 2000}..4998]'"),
            "1,000,000 messages",
            id="many overlapping selectors",
        ),
        pytest.param(
            "links:\n  profiles:\n"
            + "".join(f"    p{i}: {{}}\n" for i in range(30_000))
            + "nodes:\n"
            + "".join(f"  n{i}: {{kind: sensor, link: p{i}}}\n" for i in range(4_900)),
            "30,000 link profiles are too many",
            id="many profiles",
        ),
        pytest.param(
            NODES + f"delivery: {{{', '.join(f'p{i}: 1' for i in range(50_000))}}}\n",
            "no parameter 'p0'",
            id="many parameters",
        ),
        pytest.param(
            NODES + f"delivery: {{limit_bytes: {'x' * 900_000}}}\n", "limit_bytes", id="long value"
        ),
        pytest.param(
            "nodes: {broker: {kind: broker}, s: {kind: sensor}}\nscenario: {duration: 1s, "
            "events: [{at: 0s, publish: {from: s, topic: x, size: 999999999999MB}}]}\n",
            "at most 8MB",
            id="a message larger than memory",
        ),
        pytest.param(
            "nodes: {s: {kind: subscriber, topics: ["
            + ", ".join(f"t{i}" for i in range(1_025))
            + "]}, broker: {kind: broker}}\n",
            "at most 1,024 topics",
            id="many topics",
        ),
    ],
)
def test_a_hostile_text_is_refused_soon(text: str, message: str) -> None:
    assert message in str(refused(lambda: load_text(text, "file.yaml")))


def test_a_missing_file_is_named_with_its_likeliest_neighbour(tmp_path: Path) -> None:
    (tmp_path / "demo.yaml").write_text(NODES)
    error = refused(lambda: load(tmp_path / "dmo.yaml"))
    assert "no such file" in str(error)
    assert "did you mean 'demo.yaml'?" in str(error)
    refused(lambda: load(tmp_path / "no" / "folder" / "x.yaml"))
    refused(lambda: load(tmp_path / "demo.yaml" / "x.yaml"))
    refused(lambda: load(tmp_path / ("x" * 5000)))
    refused(lambda: load(Path("nul\0byte")))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "folder" in str(refused(lambda: load(tmp_path)))
    (tmp_path / "demo.yaml").write_text(NODES)
    assert "demo.yaml" in str(refused(lambda: load(tmp_path)))


def test_a_pipe_or_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "regular" in str(refused(lambda: load(tmp_path / "pipe")))
    assert "regular" in str(refused(lambda: load(Path("/dev/zero"))))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text(NODES)
    path.chmod(0)
    if os.geteuid() == 0:  # root may read everything, except what is no file on a disk
        assert "cannot be read" in str(refused(lambda: load(Path("/proc/self/mem"))))
    else:
        assert "may not read" in str(refused(lambda: load(path)))


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024 * 1024)
    assert "larger than 1024 KiB" in str(refused(lambda: load(path)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x7fELF\x00\x00", "binary"),
        ("name: x\n".encode("utf-16"), "UTF-16"),
        ("name: 高知\n".encode("shift_jis"), "x.yaml:1:7: byte 0x8d is not UTF-8"),
        (b"name: x\n# \xff\n", "x.yaml:2:3: byte 0xff is not UTF-8"),
    ],
)
def test_a_file_that_is_not_utf8_says_where(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    assert message in str(refused(lambda: load(path)))


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + NODES.encode())
    assert load(path).name == "x"


def test_a_pipe_instead_of_a_file_of_an_external_node_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    external = "{kind: external, image: any, files: {/a: pipe, /b: ., /c: /dev/zero, /d: missing}}"
    error = refused(lambda: load_text(f"nodes: {{a: {external}}}", "x", folder=tmp_path))
    assert sum("cannot be read as a text" in problem.message for problem in error.problems) == 4
