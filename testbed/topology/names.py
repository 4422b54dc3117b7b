"""The rules for names and topics. Sockets, interfaces and containers are called after them, so they are strict."""

import re

from nodes.wire import MAX_TOPIC_BYTES
from testbed.topology.checks import Checked, refuse, text
from testbed.topology.hints import did_you_mean, quoted

MAX_LAB_NAME = 30
MAX_NODE_NAME = 40
PLACEHOLDERS = ("node", "group")  # in the topic of a publication: {node}, {group}

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def name_problem(name: str, most: int) -> tuple[str, str] | None:
    """What is wrong with the name of a lab, node or group, if anything: message and hint."""
    if not _NAME.match(name):
        better = re.sub(r"[^a-z0-9]+", "-", name.lower())[:most].strip("-")
        return (
            f"{quoted(name)} cannot be a name: a-z, 0-9 and - are allowed, and no - in front",
            f"write {better}" if better else "choose a name like sensors",
        )
    if len(name) > most:
        return f"{quoted(name)} is too long for a name: at most {most} characters", "shorten it"
    return None


def name(what: str, most: int) -> Checked:
    """The name of a lab, node or group."""

    def check(value: object) -> str:
        given = text(value, what)
        if problem := name_problem(given, most):
            raise refuse(*problem)
        return given

    return Checked(check, {"type": "string", "pattern": f"^[a-z0-9][a-z0-9-]{{0,{most - 1}}}$"})


def label(what: str) -> Checked:
    """A name that only this file and the reports use: a profile's, a board's."""

    def check(value: object) -> str:
        given = text(value, what)
        if not re.fullmatch(_LABEL, given):
            raise refuse(
                f"{quoted(given)} cannot be {what}: letters, digits and . _ - are allowed",
                "at most 40 characters, the first a letter or digit",
            )
        return given

    return Checked(check, {"type": "string", "pattern": f"^{_LABEL}$"})


def topic_problem(topic: str) -> tuple[str, str] | None:
    """What is wrong with a complete topic, if anything: message and hint."""
    if not topic:
        return "a topic cannot be empty", "write one like alerts or readings/rain"
    if not topic.isprintable() or " " in topic:
        return "a topic cannot hold spaces or control characters", "join the words with / or -"
    if any(sign in topic for sign in "+#*"):
        return (
            f"topic {quoted(topic)} looks like a pattern, but topics are compared letter by letter",
            "list each topic by itself",
        )
    if (length := len(topic.encode(errors="replace"))) > MAX_TOPIC_BYTES:
        return f"a topic of {length} bytes; at most {MAX_TOPIC_BYTES} fit", "shorten it"
    return None


def topic() -> Checked:
    """What a subscriber wants: one exact topic."""

    def check(value: object) -> str:
        given = text(value, "a topic")
        if problem := topic_problem(given):
            raise refuse(*problem)
        if "{" in given or "}" in given:
            raise refuse(
                "a subscription is an exact topic; { } stand for a publisher only in `publish`",
                "write the publisher's name itself, as in readings/sensors-0",
            )
        return given

    return Checked(check, {"type": "string", "pattern": r"^[^+#*{}\s]+$"})


def topic_template() -> Checked:
    """What is published: {node} and {group} stand for the publisher."""

    def check(value: object) -> str:
        given = text(value, "a topic")
        for placeholder in _PLACEHOLDER.findall(given):
            if placeholder not in PLACEHOLDERS:
                raise refuse(
                    f"there is no placeholder {quoted('{' + placeholder + '}')}",
                    did_you_mean(placeholder, PLACEHOLDERS),
                )
        bare = _PLACEHOLDER.sub("x", given)
        if "{" in bare or "}" in bare:
            raise refuse("a { or } without its partner", "placeholders are {node} and {group}")
        if problem := topic_problem(bare):
            raise refuse(*problem)
        return given

    return Checked(check, {"type": "string", "pattern": r"^[^+#*\s]+$"})


def filled(template: str, node: str, group: str | None) -> str:
    """The topic that this node publishes to."""
    return template.replace("{node}", node).replace("{group}", group or "")
