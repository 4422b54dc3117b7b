"""Any scenario that a small lab can play, drawn by hypothesis and written as a user would write it in a file."""

from typing import Any

import yaml
from hypothesis import strategies as st

LAB = {
    "name": "valley",
    "seed": 3,
    "groups": {
        "gauges": {
            "kind": "sensor",
            "count": 3,
            "tags": ["upstream"],
            "at": [[33.5, 133.5], [33.6, 133.6], [33.9, 133.9]],
        }
    },
    "nodes": {
        "hub": {"kind": "broker"},
        "siren": {"kind": "subscriber", "topics": ["alerts"], "link": "mvno-128k"},
        "office": {"kind": "subscriber", "topics": ["alerts"], "tags": ["upstream"]},
    },
}
PROCESSES = ["hub", "siren", "office", "gauges[*]", "gauges[1]", "gauges[0..1]", "tag:upstream"]
AREA = [[33.4, 133.4], [33.7, 133.7]]


def scenarios(duration_ms: int, *, commands: bool) -> st.SearchStrategy[dict[str, Any]]:
    """The content of `scenario` in a topology file. With `commands`, it may contain `exec`."""
    events = st.lists(_events(duration_ms, commands=commands), max_size=6)
    return events.map(
        lambda found: {"duration": f"{duration_ms}ms", "settle": "200ms", "events": _whole(found)}
    )


def written(scenario: dict[str, Any]) -> str:
    """The whole topology file."""
    return yaml.safe_dump(copied({**LAB, "scenario": scenario}))


def copied(value: Any) -> Any:
    """Copy the value so that no object occurs twice: YAML would write an alias, which topology files may not have."""
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    return [copied(one) for one in value] if isinstance(value, list) else value


def _whole(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put before each action that repairs something (start, restore) the fault that it repairs."""
    broken = {"start": "crash", "restore": "cut"}
    found: list[dict[str, Any]] = []
    for event in events:
        for repair, fault in broken.items():
            if repair in event:
                found.append({"at": "0ms", fault: {"nodes": event[repair]["nodes"]}})
        found.append(event)
    return found


def _events(duration_ms: int, *, commands: bool) -> st.SearchStrategy[dict[str, Any]]:
    kinds = [
        *((kind, _targets()) for kind in ("crash", "stop", "cut")),
        ("start", _selectors()),
        ("restore", _selectors()),
        ("flap", _with(_targets(), down=_time(1, 300), up=_time(1, 300))),
        ("churn", _with(_targets(), leave=st.just("120/min"), join=st.just("300/min"))),
        ("link", _with(_targets(), rate=st.sampled_from(["8kbit/s", "1Mbit/s"]))),
        ("partition", st.just({"sides": [["hub"], ["siren", "gauges[0]"]]})),
        ("load", st.just({"nodes": "gauges[*]", "to": "office", "rate": "50kbit/s"})),
        ("mark", st.just("noon")),
        ("publish", _publications()),
    ]
    if commands:
        kinds.append(("exec", st.just({"nodes": "siren", "command": "true"})))
    return st.one_of(
        *(
            _timed(kind, what, duration_ms)
            for kind, what in kinds
            if kind not in ("start", "restore")
        ),
        *(_at(kind, what, duration_ms) for kind, what in kinds if kind in ("start", "restore")),
        *(_waiting(kind, what, duration_ms) for kind, what in kinds),
    )


def _timed(
    kind: str, what: st.SearchStrategy[Any], duration_ms: int
) -> st.SearchStrategy[dict[str, Any]]:
    """An event at a time; maybe repeated, maybe for a limited duration."""
    lasting = kind not in ("exec", "mark", "publish")
    repeats = kind not in ("flap", "churn", "load", "partition")

    @st.composite
    def event(draw: st.DrawFn) -> dict[str, Any]:
        at = draw(st.integers(0, duration_ms - 1))
        found: dict[str, Any] = {"at": f"{at}ms", kind: draw(what)}
        every = draw(st.none() | st.integers(20, duration_ms)) if repeats else None
        if every is not None:
            found["every"] = f"{every}ms"
        longest = min(duration_ms - at, (every or duration_ms + 1) - 1)
        if lasting and longest > 0 and draw(st.booleans()):
            found["for"] = f"{draw(st.integers(1, longest))}ms"
        return found

    return event()


def _at(
    kind: str, what: st.SearchStrategy[Any], duration_ms: int
) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda at, it: {"at": at, kind: it}, _time(1, duration_ms - 1), what)


def _waiting(
    kind: str, what: st.SearchStrategy[Any], duration_ms: int
) -> st.SearchStrategy[dict[str, Any]]:
    """An event that waits for a publication, which may never arrive."""
    when = st.one_of(
        st.just({"received": {"nodes": "siren", "level": 1}}),
        st.just({"received": {"topic": "nothing"}}),
        st.just({"delay": {"above": "1ms"}}),
        st.just({"stable": "overlay", "quiet": "1s"}),
        st.just({"received": {}, "after": "20ms", "within": f"{duration_ms}ms"}),
    )
    return st.builds(lambda trigger, it: {"when": trigger, kind: it}, when, what)


def _publications() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"topic": st.just("alerts"), "size": st.just("50B"), "priority": st.integers(1, 5)},
        optional={"share": st.just("50%")},
    ).flatmap(
        lambda one: st.sampled_from(
            [{**one, "from": "gauges[*]"}, {**one, "from": "tag:upstream"}, {**one, "within": AREA}]
        )
    )


def _targets() -> st.SearchStrategy[dict[str, Any]]:
    share = st.sampled_from([{}, {"share": "30%"}])
    area = st.just({"within": AREA})
    return st.builds(lambda one, other: {**one, **other}, _selectors() | area, share)


def _selectors() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(PROCESSES).map(lambda name: {"nodes": name})


def _with(
    base: st.SearchStrategy[dict[str, Any]], **more: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda one, other: {**one, **other}, base, st.fixed_dictionaries(more))


def _time(least_ms: int, most_ms: int) -> st.SearchStrategy[str]:
    return st.integers(least_ms, most_ms).map(lambda value: f"{value}ms")
