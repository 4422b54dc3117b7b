"""Several images are made at once; a failure stops the others."""

import threading

import pytest

from testbed.backends.docker.image_recipe import PackagesImage, Wanted
from testbed.backends.docker.images import Image, obtain_in_parallel
from testbed.backends.docker.platforms import Platform
from testbed.errors import MissingCapability

SLOW, OTHER = (PackagesImage((name,), Platform("amd64")) for name in ("slow", "other"))
LONG_S = 60.0


def image(wanted: Wanted) -> Image:
    return Image(wanted.name, "sha256:1", str(wanted.platform), 1)


def test_a_failure_is_reported_at_once_and_the_others_are_stopped() -> None:
    given_up = []

    def obtain(wanted: Wanted, stop: threading.Event) -> Image:
        if wanted is OTHER:
            raise MissingCapability("there is no such package")
        given_up.append(stop.wait(LONG_S))
        raise InterruptedError("the build was given up")

    with pytest.raises(MissingCapability, match="no such package"):
        obtain_in_parallel([SLOW, OTHER], obtain)
    assert given_up == [True]


def test_images_are_made_side_by_side() -> None:
    both = threading.Barrier(2, timeout=LONG_S)

    def obtain(wanted: Wanted, _: threading.Event) -> Image:
        both.wait()
        return image(wanted)

    assert obtain_in_parallel([SLOW, OTHER], obtain) == {SLOW: image(SLOW), OTHER: image(OTHER)}
