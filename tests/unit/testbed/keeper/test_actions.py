"""The keeper's partitions and loads end with their scenario, also if it was interrupted; without kernel or process."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.keeper import actions
from testbed.keeper.actions import ScenarioActions

ADDRESSES = {"a": "10.77.0.1", "b": "10.77.0.2", "c": "10.77.0.3"}


class Core:
    """Records the rules of partitions, as often as they were made."""

    def __init__(self) -> None:
        self.rules: list[tuple[int, list[list[str]]]] = []

    def partition(self, number, sides):
        self.rules.append((number, sides))

    def heal(self, number, sides):
        self.rules.remove((number, sides))


class Sender:
    """A sending process without a process."""

    running = True

    def __init__(self) -> None:
        self.loads: list[int] = []

    def ask(self, question):
        if question["do"] == "begin":
            self.loads.append(question["number"])
        else:
            self.loads.remove(question["number"])
        return {"ok": True, "sent": 3, "unsent": 1}


def found(name):
    attachment = SimpleNamespace(spec=SimpleNamespace(address=ADDRESSES[name]), ns_fd=0)
    return SimpleNamespace(attachment=attachment, ns_fd=0)


def keeper():
    sender = Sender()
    return ScenarioActions(found, lambda: sender, lambda _: {}), sender


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["partition", "heal", "load", "unload"]),
        st.integers(1, 3),
        st.permutations(list(ADDRESSES)),
    ),
    max_size=12,
)


@given(STEPS)
def test_no_partition_or_load_is_left_when_a_scenario_begins(steps):
    core = Core()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(actions, "partition", core)
        scenario, sender = keeper()
        for do, number, names in steps:
            match do:
                case "partition":
                    scenario.partition(number, [names[:1], names[1:]])
                case "load":
                    scenario.load(number, names[:1], names[1], 1e6, 100)
                case _:
                    getattr(scenario, do)(number)
            assert len({number for number, _ in core.rules}) == len(core.rules)
            assert len(set(sender.loads)) == len(sender.loads)
        scenario.end_scenario()
    assert core.rules == []
    assert sender.loads == []


def test_the_end_of_a_load_reports_how_much_was_sent():
    scenario, _ = keeper()
    scenario.load(1, ["a"], "b", 1e6, 100)
    assert scenario.unload(1) == {"sent": 3, "unsent": 1}
    assert scenario.unload(1) == {}
