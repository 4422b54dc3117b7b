"""Ansible's events become an outcome by host."""

from typing import Any

from testbed.backends.field.playbooks import Outcome, _note


def outcome_of(*events: dict[str, Any]) -> tuple[Outcome, list[tuple[str, str]]]:
    outcome, seen = Outcome(), []
    for event in events:
        assert _note(event, outcome, lambda host, task: seen.append((host, task)))
    return outcome, seen


def event(kind: str, host: str, task: str = "Do it", **result: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": {"host": host, "task": task, "res": result}}


def stats(processed: list[str], **more: Any) -> dict[str, Any]:
    data = {"processed": dict.fromkeys(processed, 1), **more}
    return {"event": "playbook_on_stats", "event_data": data}


def test_each_host_is_done_failed_or_out_of_reach() -> None:
    outcome, seen = outcome_of(
        event("runner_on_ok", "a", ansible_facts={"testbed_clock": 1, "os": "x"}),
        event("runner_on_failed", "b", msg="no\nroom left"),
        event("runner_on_unreachable", "c", task="", msg="No route to host"),
        stats(["a", "b", "c"], failures={"b": 1}, dark={"c": 1}, changed={"a": 3}),
    )
    assert outcome.done == ["a"]
    assert outcome.changed == {"a": 3}
    assert outcome.facts == {"a": {"testbed_clock": 1}}
    assert outcome.reasons == {
        "b": "Do it: room left",
        "c": "unreachable: connecting: No route to host",
    }
    assert seen == [("a", "Do it")]


def test_a_host_that_failed_and_was_repaired_is_done() -> None:
    outcome, _ = outcome_of(event("runner_on_failed", "a", msg="at first"), stats(["a"]))
    assert (outcome.done, outcome.failed) == (["a"], {})
