"""Whatever lies in captures/: removal touches only the runs that it names, and prune keeps to its conditions."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import TestbedError
from testbed.lab.runs import (
    Criteria,
    Entry,
    Kind,
    Status,
    Verdicts,
    entries,
    named_entry,
    remove_runs,
    select,
)

NAMES = st.sampled_from(["a", "b", "pcap", "run.json", "sweep.json", "kept", "metrics", "logs"])
TARGETS = ["/outside", "/outside/run", "/outside/file", "/captures", "/captures/a", "..", ".", "a"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
VALID = {"format": 2, "run": "a", "lab": "demo", "status": "down", "backend": {"name": "netns"}}
MANIFESTS = st.one_of(
    st.just(VALID),
    st.builds(lambda key, value: {**VALID, key: value}, st.sampled_from([*VALID, "play"]), JSON),
    JSON,
).map(json.dumps)
FILES = MANIFESTS | st.text(max_size=10)
TREES = st.recursive(
    FILES.map(lambda text: ("file", text)) | st.sampled_from(TARGETS).map(lambda to: ("link", to)),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4).map(lambda made: ("folder", made)),
    max_leaves=12,
)
RUNS = st.dictionaries(NAMES, TREES, max_size=4).map(
    lambda made: ("folder", {**made, "run.json": ("file", json.dumps(VALID))})
)


def make(path: Path, tree: Any, base: Path) -> None:
    kind, content = tree
    if kind == "file":
        path.write_text(content)
    elif kind == "link":
        path.symlink_to(f"{base}{content}" if content.startswith("/") else content)
    else:
        path.mkdir(exist_ok=True)
        for name, inner in content.items():
            make(path / name, inner, base)


def snapshot(folder: Path) -> dict[str, str]:
    """All that lies in a folder; links are not followed."""
    found = {}
    left = [folder]
    while left:
        path = left.pop()
        if path.is_symlink():
            found[str(path)] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[str(path)] = "folder"
            left += path.iterdir()
        else:
            found[str(path)] = path.read_text()
    return found


@given(
    content=st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), TREES | RUNS, max_size=4),
    named=st.lists(
        st.sampled_from(["a", "b", "c", "../outside", "../outside/run", "a/pcap", ".", "..", "/"]),
        min_size=1,
        max_size=3,
    ),
    force=st.booleans(),
    captures_only=st.booleans(),
)
def test_removal_never_touches_anything_but_the_named_runs(content, named, force, captures_only):
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        root, outside = base / "captures", base / "outside"
        (outside / "run").mkdir(parents=True)
        (outside / "run" / "run.json").write_text(json.dumps(VALID))
        (outside / "file").write_text("precious")
        make(root, ("folder", content), base)
        before = snapshot(base)
        ours = {e.name for e in entries(root, ()) if e.removable and (force or not e.kept)}
        removed: list[str] = []
        for name in named:
            try:
                entry = named_entry(root, name, ())
                remove_runs(
                    root,
                    [entry.name],
                    lambda each: removed.append(each.name),
                    force=force,
                    captures_only=captures_only,
                )
            except TestbedError:
                continue
        after = snapshot(base)
        assert set(removed) <= ours
        touched = {path for path in before.keys() | after if before.get(path) != after.get(path)}
        for path in touched:
            parts = Path(path).relative_to(base).parts
            assert parts[0] == "captures"
            assert parts[1] in removed
            if captures_only:
                assert parts[2] in ("run.json", "pcap", "trace")
        if not captures_only:
            assert not any((root / name).exists() for name in removed)


ENTRIES = st.builds(
    Entry,
    name=st.uuids().map(str),
    folder=st.just(Path("/captures/x")),
    kind=st.sampled_from(Kind),
    status=st.sampled_from(Status),
    created_ns=st.none() | st.integers(1, 10**9),
    size_bytes=st.integers(0, 1000),
    captures_bytes=st.integers(0, 1000),
    analyzed=st.booleans(),
    kept=st.booleans(),
    expectations=st.none() | st.just(Verdicts(1, 1)),
)
CRITERIA = st.builds(
    Criteria,
    older_than_s=st.none() | st.floats(0, 1),
    keep_last=st.none() | st.integers(0, 5),
    larger_than=st.none() | st.integers(0, 1000),
    captures_only=st.booleans(),
)


@given(found=st.lists(ENTRIES, max_size=8), criteria=CRITERIA)
def test_prune_keeps_to_its_conditions(found, criteria):
    now_ns = 10**9
    selection = select(found, criteria, now_ns)
    ours = [e for e in found if e.kind is not Kind.FOREIGN and e.status is not Status.DAMAGED]
    newest = {entry.name for entry in ours[: criteria.keep_last or 0]}
    for entry in selection.chosen:
        assert entry.removable
        assert not entry.kept
        assert entry.name not in newest
        assert entry.name not in selection.spared
        if criteria.older_than_s is not None:
            assert entry.created_ns is not None
            assert (now_ns - entry.created_ns) / 1e9 > criteria.older_than_s
        if criteria.larger_than is not None:
            assert entry.size_bytes > criteria.larger_than
        if criteria.captures_only:
            assert entry.analyzed
            assert entry.captures_bytes
    if criteria == Criteria(keep_last=0):
        left = {e.name for e in ours} - {e.name for e in selection.chosen} - {*selection.spared}
        assert left == set()
    everything = select(found, Criteria(keep_last=0, captures_only=criteria.captures_only), now_ns)
    assert {*selection.chosen} <= {*everything.chosen}
