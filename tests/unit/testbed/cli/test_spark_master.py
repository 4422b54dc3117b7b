"""Which Spark masters `--master` takes, of `testbed reproduce` and `testbed packets`."""

import socket

import pytest

from testbed.cli.masters import chosen_master
from testbed.errors import InputError


@pytest.mark.parametrize(
    ("asked", "chosen"), [(None, "local[*]"), ("local[4]", "local[4]"), ("local", "local")]
)
def test_without_a_cluster_spark_runs_on_this_machine(asked: str | None, chosen: str) -> None:
    assert chosen_master(asked) == chosen


def test_a_master_that_answers_is_taken_also_if_another_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for asked in (f"spark://127.0.0.1:{port}", f"spark://127.0.0.1:1,127.0.0.1:{port}"):
            assert chosen_master(asked) == asked


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("yarn", "is not a Spark master"),
        ("spark://127.0.0.1:1", "no Spark master answers at spark://127.0.0.1:1"),
        ("spark://127.0.0.1", "HOST:PORT is missing"),
        ("spark://127.0.0.1:nine", "no Spark master answers"),
    ],
)
def test_an_unusable_master_is_refused_before_anything_starts(asked: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen_master(asked)
