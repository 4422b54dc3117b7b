"""Profiles of hypothesis: the same examples each time, and many new ones for exploring.

A test's own settings come before the profile's. So `explore` lengthens the stateful tests here; the other tests get
new examples by a new seed in each pass (`scripts/explore`).
"""

import pytest
from hypothesis import HealthCheck, settings

EXPLORE = "explore"
MORE_EXAMPLES, LONGER = 4, 4  # times, for stateful tests

settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=True,
)
settings.register_profile(
    EXPLORE,
    settings.get_profile("default"),
    derandomize=False,
    max_examples=1_000,
)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let stateful tests try more and longer sequences of steps, with new random numbers."""
    if settings.get_current_profile_name() != EXPLORE:
        return
    classes = {item.cls for item in items if isinstance(item, pytest.Function)}
    for cls in classes:
        if isinstance(chosen := getattr(cls, "settings", None), settings):
            cls.settings = settings(
                chosen,
                max_examples=MORE_EXAMPLES * chosen.max_examples,
                stateful_step_count=LONGER * chosen.stateful_step_count,
                derandomize=False,
            )
