"""Events are prepared before their time: only the action is left, and later events see the earlier changes."""

import time

import pytest

from support.labs.fake_labs import LAB, FakePlace, up
from testbed.errors import InputError, TestbedError
from testbed.lab.preparation import ActionPreparation, Outcome, sleep_until
from testbed.progress import ignore
from testbed.records import locked
from testbed.scenario import TimedAction
from testbed.topology.model import ActionKind

CUT = TimedAction(0, ActionKind.CUT, ("siren",))
HEALED = TimedAction(1, ActionKind.RESTORE, ("siren",))
MARK = TimedAction(2, ActionKind.MARK, ())


def test_prepared_actions_take_effect_when_performed_and_see_earlier_changes(
    file, place: FakePlace
):
    record = up(LAB, file, place)
    with ActionPreparation(record, LAB, ignore, place).prepare([CUT, CUT, HEALED, MARK]) as acts:
        assert not place.backend.links()["siren"].up.cut
        (entry,) = acts[0]().links
        assert (entry["action"], entry["links"]) == ("cut", ["siren"])
        assert place.backend.links()["siren"].up.cut
        assert acts[1]() == Outcome()  # it is cut already
        assert [each["action"] for each in acts[2]().links] == ["reset"]
        assert not place.backend.links()["siren"].up.cut
        assert acts[3]() == Outcome()


def test_no_other_command_changes_links_while_events_are_prepared(file, place: FakePlace):
    record = up(LAB, file, place)
    preparation = ActionPreparation(record, LAB, ignore, place)
    with preparation.prepare([CUT]), pytest.raises(InputError), locked(record.name):
        pass
    with preparation.prepare([MARK]), locked(record.name):
        pass


def test_an_action_that_cannot_be_prepared_fails_alone_and_when_it_is_due(file, place: FakePlace):
    record = up(LAB, file, place)
    strange = TimedAction(0, ActionKind.CUT, ("nobody",))
    with ActionPreparation(record, LAB, ignore, place).prepare([strange, CUT]) as (wrong, right):
        with pytest.raises(TestbedError, match="no link at present: nobody"):
            wrong()
        assert right().links


def test_sleeping_ends_at_its_moment_and_not_before():
    wanted_ns = time.time_ns() + 20_000_000
    sleep_until(wanted_ns)
    assert time.time_ns() >= wanted_ns
    sleep_until(0)
