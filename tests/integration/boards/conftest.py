"""The programs of a board, and a bench of namespaces in which tests run them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.boards.board_bench import Bench
from testbed.backends.common import zipapp
from testbed.backends.field import capture_zipapp


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    zipapp.build(folder / "nodes.pyz")
    capture_zipapp.build(folder / "capture.pyz")
    return folder


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with ExitStack() as held:
        yield Bench(held, programs)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    return tmp_path / "links.json"
