"""The rows of a trial: their columns, and relations that follow from the methods for any numbers."""

import pytest

from testbed.converged import PATTERNS, measure_topics, population
from testbed.converged.topics import METHODS

COLUMNS = {
    "pattern": str,
    "publishers": int,
    "subscribers": int,
    "nodes": int,
    "trial": int,
    "method": str,
    "strategy": str,
    "priority": int,
    "support": str,
    "support_from": str,
    "path": float,
    "forwards": float,
    "starts": float,
    "delay_ms": float,
    "publications": int,
    "deliveries": int,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_name_their_pattern_size_trial_and_method(pattern: str) -> None:
    rows = measure_topics(pattern, 1_000, seed=1, trial=4, priorities=[1, 5])
    publishers, subscribers = PATTERNS[pattern]
    for row in rows:
        assert {name: type(value) for name, value in row.items()} == COLUMNS
        assert (row["pattern"], row["nodes"], row["trial"]) == (pattern, 1_000, 4)
        assert row["publications"] == 1_000 // (publishers + subscribers) * publishers
        assert row["deliveries"] == row["publications"] * subscribers
        assert row["delay_ms"] == pytest.approx(12 * row["path"])
    assert {row["method"] for row in rows} == set(METHODS)
    choosing = ("method", "strategy", "priority", "support", "support_from")
    assert len({tuple(row[key] for key in choosing) for row in rows}) == len(rows)


def test_the_same_seed_and_trial_give_the_same_rows() -> None:
    first, again, other = (measure_topics("e", 100, seed=1, trial=trial) for trial in (0, 0, 1))
    assert first == again
    assert [row["path"] for row in first] != [row["path"] for row in other]


def test_the_rows_of_a_method_do_not_depend_on_the_other_methods() -> None:
    alone = measure_topics("e", 100, seed=1, methods=["fan-tbps"])
    assert alone == [row for row in measure_topics("e", 100, seed=1) if row["method"] == "fan-tbps"]


@pytest.mark.parametrize("strategy", ["flood", "search"])
def test_psg_at_priority_one_is_sg_and_more_urgent_is_never_slower(strategy: str) -> None:
    rows = [row for row in measure_topics("b", 1_000, seed=2) if row["strategy"] == strategy]
    (sg,) = (row for row in rows if row["method"] == "sg-tbps")
    for support in ("next", "exact"):
        for origin in ("participants", "publishers"):
            psg = [
                row
                for row in rows
                if (row["method"], row["support"], row["support_from"])
                == ("psg-tbps", support, origin)
            ]
            assert (psg[0]["path"], psg[0]["forwards"]) == (sg["path"], sg["forwards"])
            paths, forwards = ([row[key] for row in psg] for key in ("path", "forwards"))
            assert paths == sorted(paths, reverse=True)
            assert forwards == sorted(forwards)


def test_nodes_left_over_are_in_no_topic() -> None:
    participants = population(2, 3, 13, seed=1)
    assert participants.topics == 2
    assert len(set(participants.owners.tolist())) == 10
    assert participants.vectors.shape == (13,)
    members = participants.owners.reshape(2, 5)
    assert all((part[:-1] < part[1:]).all() for topic in members for part in (topic[:2], topic[2:]))


def test_too_few_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="a topic has 1,000 nodes, and there are 999 only"):
        measure_topics("a", 999, seed=1)
