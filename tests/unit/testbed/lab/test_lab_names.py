"""A lab's name is unique, is no path, and only one command at a time holds it."""

import pytest

from support.labs.fake_labs import LAB, up
from testbed.errors import InputError, NoSuchLab, TestbedError
from testbed.lab.down import bring_down
from testbed.progress import ignore
from testbed.records import find_lab, locked


@pytest.mark.parametrize("name", ["", ".", "..", "../victim", "/tmp/victim", "a/b", "-x", "x" * 31])
def test_a_labs_name_is_never_a_path(places, name):
    victim = places / "victim"
    victim.mkdir()
    with pytest.raises(InputError, match="cannot be a lab's name"):
        bring_down(name, ignore)
    assert victim.exists()


def test_an_unknown_lab_is_named_with_the_nearest_known_one(place, file):
    up(LAB, file, place)
    with pytest.raises(NoSuchLab) as caught:
        find_lab("vally")
    assert caught.value.hint == "did you mean 'valley'?"


def test_two_commands_do_not_change_a_lab_at_once(places):
    with locked("valley"):
        with pytest.raises(InputError, match="another command is changing"), locked("valley"):
            pass
        with locked("other"):
            pass
    with locked("valley"):
        pass
    assert list((places / "s").iterdir()) == []


def test_a_state_folder_that_others_can_write_to_is_refused(places):
    (places / "s").mkdir()
    (places / "s").chmod(0o777)
    with pytest.raises(TestbedError, match="only you can write to"), locked("valley"):
        pass
