"""How platforms are written on the command line."""

import pytest

from testbed.cli.commands.image import _platforms
from testbed.errors import InputError
from testbed.topology.schema.sections import PLATFORMS


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ([], []),
        (["linux/arm64"], ["linux/arm64"]),
        (["linux/arm64,linux/amd64"], ["linux/arm64", "linux/amd64"]),
        (["linux/arm64, linux/arm64", "linux/amd64"], ["linux/arm64", "linux/amd64"]),
        (["all"], list(PLATFORMS)),
    ],
)
def test_each_platform_counts_once_with_commas_or_repeated_options(
    written: list[str], meant: list[str]
) -> None:
    assert _platforms(written) == meant


def test_a_mistyped_platform_comes_with_the_likely_one() -> None:
    with pytest.raises(InputError, match="linux/arm46") as refused:
        _platforms(["linux/amd64,linux/arm46"])
    assert refused.value.hint == "did you mean 'linux/arm64'?"
