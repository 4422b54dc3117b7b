"""Selectors of nodes: `broker`, `sensors[*]`, `sensors[0]`, `sensors[1..3]` (both ends included)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.topology.diagnostics.hints import did_you_mean, quoted

_SELECTOR = re.compile(r"([^\[\]]+)\[(?:(\*)|([0-9]{1,6})(?:\.\.([0-9]{1,6}))?)\]\Z")


TAG = "tag:"  # prefix of a tag: selects all nodes that have it


class SelectorError(ValueError):
    """The selector selects no node; `hint` names the likeliest one."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Members:
    """The names of nodes and groups that selectors can select."""

    nodes: frozenset[str]  # every node's name, also those that come from groups
    groups: Mapping[str, int | None]  # group -> count; None if it is not known


@dataclass(frozen=True, slots=True)
class MemberRange:
    """Consecutive members of a group; not their names, as thousands of selectors may select thousands each."""

    group: str
    indices: range


def member(group: str, index: int) -> str:
    """The name of a group's member; members are counted from 0."""
    return f"{group}-{index}"


def select(selector: str, members: Members) -> str | MemberRange | None:
    """The node or members of the selector; None if the group's count is not known; SelectorError without any."""
    if "[" not in selector and "]" not in selector:
        return _single(selector, members)
    found = _SELECTOR.match(selector)
    if found is None:
        raise SelectorError(
            f"{quoted(selector)} is not a selector",
            "write a node's name, or a group with [*], [0] or [1..3]",
        )
    group, every, first_text, last_text = found.groups()
    if group not in members.groups:
        hint = (
            f"{group} is a single node: write it without brackets"
            if group in members.nodes
            else did_you_mean(group, members.groups)
        )
        raise SelectorError(f"there is no group {quoted(group)}", hint or "the file has no groups")
    count = members.groups[group]
    first = 0 if every else int(first_text)
    last = first if last_text is None else int(last_text)
    if first > last:
        raise SelectorError(
            f"{quoted(selector)}: the range is reversed", f"write {group}[{last}..{first}]"
        )
    if count is None:
        return None
    if last >= count:
        raise SelectorError(
            f"group {quoted(group)} has no member {last}",
            f"its {count} are counted from 0: {group}[0..{count - 1}]"
            if count > 1
            else f"it has only {group}[0]",
        )
    return MemberRange(group, range(count) if every else range(first, last + 1))


def merged(member_ranges: Iterable[MemberRange]) -> list[MemberRange]:
    """Unite overlapping ranges."""
    result: list[MemberRange] = []
    for member_range in sorted(member_ranges, key=lambda s: (s.group, s.indices.start)):
        last = result[-1] if result else None
        if (
            last
            and last.group == member_range.group
            and member_range.indices.start <= last.indices.stop
        ):
            stop = max(last.indices.stop, member_range.indices.stop)
            result[-1] = MemberRange(last.group, range(last.indices.start, stop))
        else:
            result.append(member_range)
    return result


def _single(name: str, members: Members) -> str:
    if name in members.nodes:
        return name
    if name in members.groups:
        raise SelectorError(f"{quoted(name)} is a group", f"for all its nodes write {name}[*]")
    known = [*members.nodes, *(f"{group}[*]" for group in members.groups)]
    raise SelectorError(f"there is no node {quoted(name)}", did_you_mean(name, sorted(known)))
