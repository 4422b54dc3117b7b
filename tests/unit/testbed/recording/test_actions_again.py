"""Actions are replayed at the times when they were performed, except for starts, which take a while."""

from testbed.recording.actions import actions_of

START_NS = 1_000


def entry(action: str, due_ns: int, t_ns: int, **details: object) -> dict[str, object]:
    return {
        "t_ns": START_NS + t_ns,
        "due_ns": START_NS + due_ns,
        "action": action,
        "targets": ["siren"],
        "details": details,
    }


def test_actions_are_repeated_at_their_real_times_in_order_and_starts_when_they_were_ordered():
    done = [entry("crash", 5, 7), entry("start", 20, 90), entry("cut", 30, 31)]
    actions = [(one.at_ns, one.kind.value) for one in actions_of(done, START_NS)]
    assert actions == [(7, "crash"), (20, "start"), (31, "cut")]
    planned = [one.at_ns for one in actions_of(done, START_NS, as_due=True)]
    assert planned == [5, 20, 30]


def test_the_outcome_of_an_action_is_not_carried_over_to_its_replay():
    (again,) = actions_of([entry("unload", 5, 7, number=1, sent=90, unsent=3)], START_NS)
    assert again.details == {"number": 1}


def test_actions_that_failed_or_preceded_the_scenario_are_not_repeated():
    done = [entry("crash", 5, 7, failed="no answer"), entry("cut", -9, -8)]
    assert actions_of(done, START_NS) == ()
