"""The rules for names and topics. Sockets, interfaces and containers have these names, so the rules are strict."""

import re

from nodes.protocol.wire import MAX_TOPIC_BYTES
from testbed.topology.diagnostics.hints import quoted

MAX_LAB_NAME = 30
MAX_NODE_NAME = 40
PLACEHOLDERS = ("node", "group")  # in the topic of a publication: {node}, {group}

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\Z")


def name_problem(name: str, most: int) -> tuple[str, str] | None:
    """The problem of a name of a lab, node or group: message and hint; None if it is valid."""
    if not _NAME.match(name):
        better = re.sub(r"[^a-z0-9]+", "-", name.lower())[:most].strip("-")
        return (
            f"{quoted(name)} cannot be a name: a-z, 0-9 and - are allowed, and no - in front",
            f"write {better}" if better else "choose a name like sensors",
        )
    if len(name) > most:
        return f"{quoted(name)} is too long for a name: at most {most} characters", "shorten it"
    return None


def topic_problem(topic: str) -> tuple[str, str] | None:
    """The problem of a complete topic: message and hint; None if it is valid."""
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


def filled(template: str, node: str, group: str | None) -> str:
    """The topic that this node publishes to."""
    return template.replace("{node}", node).replace("{group}", group or "")
