"""Where namespaces are forbidden, the hint names the setting that forbids them."""

import pytest

from testbed.links import namespaces


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("kernel.unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user.max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ],
)
def test_the_hint_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str, remedy: str
) -> None:
    monkeypatch.setattr(namespaces, "_sysctl", lambda name: value if name == setting else "")
    hint = namespaces.refusal_hint(unprivileged=True)
    assert f"sudo sysctl -w {remedy}" in hint


def test_without_a_known_setting_the_container_is_suspected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(namespaces, "_sysctl", lambda _: "")
    assert "seccomp" in namespaces.refusal_hint(unprivileged=True)
    assert "--cap-add" in namespaces.refusal_hint(unprivileged=False)
