"""The links of a running lab: their state, and changes of them, which the run's manifest records."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodes.plugins import PluginError
from testbed.backends.common.base import Backend
from testbed.backends.common.names import has_boards
from testbed.backends.registry import Maker, make_backend
from testbed.errors import InputError, TestbedError
from testbed.lab.journal import Journal
from testbed.links.changes import (
    BOTH,
    Action,
    LinkOrder,
    LinkState,
    apply_order,
    configured_links,
    describe_differences,
    find_differences,
    still_changed,
)
from testbed.links.model import queue_limit
from testbed.places import LabPlace
from testbed.progress import Emit, Note, ignore
from testbed.records import LabRecord, extend_manifest, find_lab, locked, read_manifest
from testbed.topology.diagnostics.hints import did_you_mean, listing, quoted
from testbed.topology.model import Profile, Topology, from_json
from testbed.topology.parse.selectors import MemberRange, Members, SelectorError, member, select
from testbed.topology.profiles import PROFILES, REPAIR

# Selectors of links: names of their nodes, as in topology files, or `all`. Pure.


ALL = "all"


def members_of(topology: Topology) -> Members:
    """The names that selectors can use in this lab."""
    names = frozenset(node.name for node in topology.nodes)
    return Members(names, Counter(node.group for node in topology.nodes if node.group))


def select_links(selectors: Sequence[str], topology: Topology) -> tuple[str, ...]:
    """The selected links, each once, in the file's order; InputError for a selector without a link."""
    members = members_of(topology)
    meant: set[str] = set()
    for selector in selectors:
        meant |= _meant(selector, members)
    return tuple(node.name for node in topology.nodes if node.name in meant)


def _meant(selector: str, members: Members) -> frozenset[str]:
    if selector == ALL and ALL not in members.nodes:
        return members.nodes
    try:
        found = select(selector, members)
    except SelectorError as error:
        raise InputError(str(error), error.hint) from error
    if isinstance(found, MemberRange):
        return frozenset(member(found.group, index) for index in found.indices)
    return frozenset() if found is None else frozenset({found})


RECORD = "link_changes"  # of the manifest
PATIENCE_S = 5.0  # for another command that changes the lab's links at the same moment


@dataclass(frozen=True, slots=True)
class LinkView:
    """One link: as the file says, as it is now (None: it does not exist), and packet counts (empty: not counted)."""

    name: str
    profile: str
    behind: str | None  # the router whose link it shares
    configured: LinkState
    now: LinkState | None
    counts: Mapping[str, Mapping[str, int]]  # direction -> forwarded, dropped_queue, ...
    queue_limits: Mapping[
        str, int | None
    ]  # direction -> bytes of the queue that counts; None: nothing ever waits


def topology_of(record: LabRecord) -> Topology:
    """The topology of the lab, from its manifest."""
    return from_json(read_manifest(record.run_place)["topology"])


def known_profile(record: LabRecord, name: str) -> Profile:
    """A profile of the lab's file, or a built-in one."""
    own = {each.name: each for each in topology_of(record).profiles}
    if name not in own and name not in PROFILES:
        hint = did_you_mean(name, sorted({*own, *PROFILES}))
        raise InputError(f"there is no link profile {quoted(name)}", hint)
    try:
        return own.get(name) or PROFILES[name]
    except PluginError as error:
        raise InputError(str(error), REPAIR) from error


def view_links(
    record: LabRecord, selectors: Sequence[str], make: Maker = make_backend
) -> tuple[LinkView, ...]:
    """The selected links as they are now; all of them without a selector."""
    topology = topology_of(record)
    names = select_links(selectors or [ALL], topology)
    backend = _backend(record, topology, ignore, make)
    now, counts, configured = backend.links(), backend.link_counts(), configured_links(topology)
    return tuple(
        LinkView(
            name,
            (node := topology.node(name)).profile,
            node.router,
            configured[name],
            now.get(name),
            counts.get(name, {}),
            _queue_limits(
                "" if node.on_board and has_boards(record.backend) else backend.emulator,
                now.get(name),
                topology.profile(node.profile).mtu,
            ),
        )
        for name in names
    )


def _queue_limits(emulator: str, now: LinkState | None, mtu: int) -> dict[str, int | None]:
    """Of both directions, as the emulator has them now; empty without a link."""
    if now is None:
        return {}
    return {each: queue_limit(emulator, now.direction_state(each).shape, mtu) for each in BOTH}


def change_links(
    record: LabRecord,
    selectors: Sequence[str],
    order: LinkOrder,
    emit: Emit,
    make: Maker = make_backend,
) -> dict[str, Any] | None:
    """Change all selected links, or none; return the manifest's entry, or None if no link had to change."""
    with locked(record.name, patience_s=PATIENCE_S):
        record = find_lab(record.name)
        topology = topology_of(record)
        names = select_links(selectors, topology)
        changer = LinkChanger(record, topology, _backend(record, topology, emit, make))
        change = changer.prepare(names, order)
        _note_unchanged_mtu(order, names, topology, emit)
        if change is None:
            return None
        entry = change()
        extend_manifest(record.run_place, **{RECORD: [entry]})
        return entry


class LinkChanger:
    """Prepares changes of links and writes them to the journal, so that only the change itself is left to do in time.

    The caller holds the lab's lock: no other command may change a link between two changes.
    """

    def __init__(self, record: LabRecord, topology: Topology, backend: Backend) -> None:
        self._record, self._topology, self._backend = record, topology, backend
        self._now = dict(backend.links())
        self._emulator = backend.emulator

    def prepare(
        self, names: Sequence[str], order: LinkOrder
    ) -> Callable[[], dict[str, Any]] | None:
        """A function that makes the change and returns the manifest's entry; None if no link has to change."""
        now = self._now
        if missing := [name for name in names if name not in now]:
            raise TestbedError(
                f"no link at present: {listing(missing)}",
                f"`testbed status {self._record.name}` shows the remaining nodes; `testbed up` completes the lab",
            )
        before = {name: now[name] for name in names}
        changed = apply_order(order, before, configured_links(self._topology), self._emulator)
        if not changed:
            return None
        entry = _entry(order, list(changed))
        Journal(self._record.run_place.journal).write(step="link", **entry)
        self._now = {**now, **changed}

        def change() -> dict[str, Any]:
            self._backend.change_links(changed, before)
            return {"t_ns": time.time_ns(), **entry}

        return change


def note_changed_links(
    backend: Backend, topology: Topology, anew: frozenset[str], emit: Emit
) -> None:
    """Note which links were changed and stay so during an `up`; links that the `up` makes anew are left out."""
    now = {name: link for name, link in backend.links().items() if name not in anew}
    if sentence := describe_differences(find_differences(now, configured_links(topology))):
        emit(Note(f"{sentence}; `testbed link reset {topology.name} all` would undo that"))


def record_remade_links(
    record: LabRecord, backend: Backend, topology: Topology, anew: frozenset[str]
) -> None:
    """Record that changed links which an `up` has made anew are as the file says again."""
    changed = still_changed(read_manifest(record.run_place).get(RECORD, []))
    now, configured = backend.links(), configured_links(topology)
    if back := [name for name in changed if name in anew and now.get(name) == configured[name]]:
        _put_on_record(record, _entry(LinkOrder(Action.RESET), back))


def _note_unchanged_mtu(
    order: LinkOrder, names: Sequence[str], topology: Topology, emit: Emit
) -> None:
    """Note that the MTU stays: it belongs to the interfaces, which are not remade."""
    if order.profile is None:
        return
    sizes = {topology.profile(topology.node(name).profile).mtu for name in names}
    if sizes != {order.profile.mtu}:
        allowed = " or ".join(f"{size} bytes" for size in sorted(sizes))
        emit(Note(f"the mtu stays as it is ({allowed}): it cannot change while the lab runs"))


def _entry(order: LinkOrder, links: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "action": order.action.value,
        "links": links,
        "directions": list(order.directions),
    }
    if order.profile is not None:
        entry["profile"] = order.profile.name
    if order.action is Action.SET:
        entry["shapes"] = order.shapes()
    return entry


def _put_on_record(record: LabRecord, entry: dict[str, Any]) -> dict[str, Any]:
    """Add the entry to the manifest, with the current time."""
    dated = {"t_ns": time.time_ns(), **entry}
    extend_manifest(record.run_place, **{RECORD: [dated]})
    return dated


def _backend(record: LabRecord, topology: Topology, emit: Emit, make: Maker) -> Backend:
    return make(record.backend, LabPlace.of(record.name), record.run_place, topology, emit)
