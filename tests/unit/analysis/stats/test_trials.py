"""Runs of one experiment are its trials, numbered by seed."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.run_folder import Run
from analysis.stats.trials import trials_of


def run_of(name: str, seed: int, created_ns: int = 0, **topology: Any) -> Run:
    manifest = {
        "run": name,
        "created_ns": created_ns,
        "backend": {"name": "simulated"},
        "topology": {"seed": seed, "name": name, **topology},
    }
    return Run(Path(name), manifest, ())


def test_trials_are_numbered_by_their_seeds_not_by_the_time_at_which_they_were_made() -> None:
    runs = [run_of("a", 9, created_ns=1), run_of("b", 3, created_ns=2), run_of("c", 5, 3)]
    assert [(trial.run.name, trial.number) for trial in trials_of(runs)] == [
        ("a", 3),
        ("b", 1),
        ("c", 2),
    ]


def test_runs_of_one_seed_are_numbered_by_the_time_at_which_they_were_made() -> None:
    runs = [run_of("a", 3, created_ns=7), run_of("b", 3, created_ns=2), run_of("c", 1, 9)]
    assert [trial.number for trial in trials_of(runs)] == [3, 2, 1]


def test_each_experiment_counts_its_own_trials() -> None:
    runs = [
        run_of("a", 3),
        run_of("b", 1, overlay="x"),
        run_of("c", 1),
        run_of("d", 2, overlay="x"),
    ]
    assert [trial.number for trial in trials_of(runs)] == [2, 1, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8), st.randoms())
def test_the_numbers_do_not_depend_on_the_order_in_which_runs_are_named(
    made: list[tuple[int, int]], chance: Any
) -> None:
    runs = [run_of(f"r{number}", *one) for number, one in enumerate(made)]
    mixed = chance.sample(runs, len(runs))
    by_name = {trial.run.name: trial.number for trial in trials_of(runs)}
    assert {trial.run.name: trial.number for trial in trials_of(mixed)} == by_name
    assert sorted(by_name.values()) == [*range(1, len(runs) + 1)]
    seeds = {run.name: run.manifest["topology"]["seed"] for run in runs}
    ordered = [seeds[name] for name in sorted(by_name, key=lambda name: by_name[name])]
    assert ordered == sorted(ordered)
