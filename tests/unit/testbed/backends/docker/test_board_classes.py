"""Classes of boards and their limits."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.docker import core_speed
from testbed.backends.docker.board_classes import BOARDS, LEAST_QUOTA_US, limits
from testbed.topology.schema import sections

speeds = st.floats(1, 20_000)
boards = st.sampled_from(sorted(BOARDS))


def test_a_topology_can_name_just_these_classes() -> None:
    assert set(sections.BOARDS) == set(BOARDS)
    assert {board.platform for board in BOARDS.values()} <= set(sections.PLATFORMS)


def test_the_pi_4_has_the_published_speed_and_the_others_follow() -> None:
    assert BOARDS["pi-4"].speed == pytest.approx(10_000 / 79.216)
    assert BOARDS["pi-5"].speed / BOARDS["pi-4"].speed == pytest.approx(3196 / 1661)
    slowest_first = sorted(BOARDS, key=lambda name: BOARDS[name].speed)
    assert slowest_first == ["pi-zero", "pi-2", "pi-zero-2w", "pi-3", "pi-4", "pi-5"]


@given(boards, speeds)
def test_a_node_gets_the_boards_speed_out_of_a_core_that_is_faster(name: str, here: float) -> None:
    board = BOARDS[name]
    its = limits(board, here)
    engine = its.for_engine()
    assert engine["mem_limit"] == engine["memswap_limit"] == board.memory
    if here <= board.speed:
        assert its.share is None
        assert "cpu_quota" not in engine
        assert its.slower == pytest.approx(here / board.speed)
    else:
        reached = engine["cpu_quota"] / engine["cpu_period"] * here
        assert reached == pytest.approx(board.speed, rel=0.01)
        assert engine["cpu_quota"] >= LEAST_QUOTA_US
        assert engine["cpu_period"] <= 1_000_000, "the kernel takes no longer one"


def test_limits_have_a_text() -> None:
    pi_zero = BOARDS["pi-zero"]
    assert limits(pi_zero, pi_zero.speed * 10).in_words() == "0.10 of a core, 512 MiB"
    assert limits(pi_zero, pi_zero.speed).in_words() == "a whole core, 512 MiB"
    text = limits(pi_zero, pi_zero.speed / 2).in_words()
    assert text == "a whole core, which is only 0.50 of the board's, 512 MiB"


def test_the_speed_of_a_core_is_a_program_of_its_own() -> None:
    program = [sys.executable, "-I", core_speed.__file__]
    output = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert float(output) > 0


def test_the_documentation_has_the_table(repository: Path) -> None:
    text = (repository / "docs" / "howto" / "images.md").read_text()
    rows = re.findall(r"^\| `(pi-\S+)` \|(.*)\|$", text, re.MULTILINE)
    assert {name for name, _ in rows} == set(BOARDS)
    for name, row in rows:
        board = BOARDS[name]
        _, memory, mips, speed, platform = (cell.strip(" `") for cell in row.split("|"))
        size, unit = memory.split()
        assert int(size) * {"MiB": 1 << 20, "GiB": 1 << 30}[unit] == board.memory
        assert mips == f"{board.mips} MIPS"
        assert speed == f"{board.speed:.0f}"
        assert platform == board.platform
