"""Runs that are compared are distinguished by what differs between them, and by nothing else."""

import copy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.run_folder import Run
from analysis.stats.run_settings import distinguish, settings_of
from support.runs.star_runs import Host, manifest_of

MEMBERS = [
    (Host("a", 1, "10.77.0.1"), "broker", ()),
    (Host("s", 2, "10.77.0.2"), "sensor", ()),
]


def run_of(backend: str = "netns", **topology: Any) -> Run:
    manifest = copy.deepcopy(manifest_of(MEMBERS, "r"))
    manifest["backend"]["name"] = backend
    manifest["topology"] |= topology
    return Run(Path("r"), manifest, ())


def slower(rate_bps: float) -> list[dict[str, Any]]:
    profiles = copy.deepcopy(manifest_of(MEMBERS, "r")["topology"]["profiles"])
    profiles[1]["up"] = {**profiles[1]["up"], "rate_bps": rate_bps}
    return profiles


DMPQ = {"method": "dmpq-pc", "parameters": [["T", 3]]}


def test_the_delivery_method_distinguishes_runs_of_one_overlay_and_backend() -> None:
    differing, same = distinguish([[run_of()], [run_of(delivery=DMPQ)]])
    assert differing == [{"delivery": "fifo"}, {"delivery": "dmpq-pc (T 3)"}]
    assert (same["overlay"], same["backend"], same["seed"]) == ("star", "netns", "1")
    assert "delivery" not in same


def test_an_override_stands_for_the_values_that_follow_from_it() -> None:
    path = "links.profiles.3g.up.rate"
    slow = run_of(profiles=slower(64e3), overrides=[[path, "64kbit/s"]])
    differing, same = distinguish([[run_of()], [slow]])
    assert differing == [{path: "as in the file"}, {path: "64kbit/s"}]
    method = run_of(delivery=DMPQ, overrides=[["delivery.method", "dmpq-pc"]])
    differing, _ = distinguish([[run_of()], [method]])
    assert [*differing[0]] == ["delivery"]
    assert "links.profiles.lan" not in same


def test_a_link_profile_that_was_edited_is_described() -> None:
    differing, _ = distinguish([[run_of()], [run_of(profiles=slower(64e3))]])
    assert differing == [
        {"links.profiles.3g": "up no limit 5ms, down no limit 5ms"},
        {"links.profiles.3g": "up 64kbit/s 5ms, down no limit 5ms"},
    ]


def test_the_seeds_of_trials_are_all_named() -> None:
    sides = [[run_of(seed=1), run_of(seed=2)], [run_of(seed=1), run_of(seed=3)]]
    assert distinguish(sides)[0] == [{"seed": "1 | 2"}, {"seed": "1 | 3"}]


def test_a_backend_with_another_emulator_is_one_difference() -> None:
    docker = run_of(backend="docker")
    docker.manifest["emulator"]["name"] = "netem"
    assert distinguish([[run_of()], [docker]])[0] == [{"backend": "netns"}, {"backend": "docker"}]


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "seed": st.integers(0, 2),
                "delivery": st.sampled_from([DMPQ, {"method": "fifo", "parameters": []}]),
                "overrides": st.lists(
                    st.tuples(st.sampled_from(["a.b", "c"]), st.sampled_from(["1", "2"])),
                    unique_by=lambda pair: pair[0],
                ),
            }
        ),
        min_size=2,
        max_size=4,
    )
)
def test_each_setting_either_differs_or_is_the_same(chosen: list[dict[str, Any]]) -> None:
    runs = [run_of(**topology) for topology in chosen]
    differing, same = distinguish([[run] for run in runs])
    for name in differing[0]:
        assert len({one[name] for one in differing}) > 1
    for run, own in zip(runs, differing, strict=True):
        known = settings_of(run)
        assert own.items() | same.items() >= {
            (name, value) for name, value in known.items() if name in (*own, *same)
        }
        left = [name for name in known if name not in own and name not in same]
        assert all(name.startswith("links.profiles.") for name in left)
