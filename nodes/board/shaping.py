"""Applies a board's link settings, and restores the state from before."""

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nodes.board import kernel as system
from nodes.board.errors import BoardError
from nodes.board.kernel import CommandFailed, Interface, offloads_on, run, switch, works
from nodes.board.links import Links, read_links
from nodes.board.plan import (
    INGRESS,
    OUTER,
    QUEUE,
    Note,
    Plan,
    device_name,
    lacking,
    plan,
    write_note,
)

_ONE_FRAME = 1  # gso_max_segs: else TCP makes packets of several frames even where offloads are off


def shape(path: Path) -> bool:
    """Apply the file; whether anything had to be changed. If that fails, the link is left without shaping."""
    links = read_links(path)
    if not _differs(path, links):
        return False
    for device, note in _own(path).items():
        if links.open or (note is not None and note.interface != links.interface):
            _clear(device, note)
    if not links.open:
        try:
            _shape(path, links)
        except BoardError:
            unshape(path)
            raise
    return True


def unshape(path: Path) -> bool:
    """Remove the shaping, also an incomplete one; whether there was any."""
    own = _own(path)
    for device, note in own.items():
        _clear(device, note)
    return _clear_remains(path) or bool(own)


def show(path: Path) -> dict[str, Any]:
    """The present state, the settings of the file, and whether `shape` would change anything."""
    links = read_links(path)
    found = system.interface(links.interface)
    note = _note(path, links)
    own = [*_own(path)]
    wanted = _plan(path, links, found, note) if found and note and not links.open else None
    return {
        "changed": _differs(path, links),
        "in_force": {
            "interface": links.interface,
            "there": found is not None,
            "devices": own,
            "disciplines": {
                device: one.disciplines
                for device in (links.interface, *own)
                if (one := system.interface(device))
            },
            "note": write_note(note) if note else None,
        },
        "wanted": {
            **asdict(links),
            "peers": [str(peer) for peer in links.peers],
            # What the kernel can do is known only when it has been tried.
            "commands": [list(command) for command in wanted.commands()] if wanted else None,
        },
    }


def _own(path: Path) -> dict[str, Note | None]:
    """Devices of this file. One without a note was made by a process that died before it did anything else."""
    return {
        device: note
        for device, note in system.notes().items()
        if (note is not None and note.testbed == str(path))
        or (note is None and device == _expected(path))
    }


def _expected(path: Path) -> str | None:
    with suppress(BoardError):
        return device_name(path, read_links(path).interface)
    return None


def _note(path: Path, links: Links) -> Note | None:
    return system.notes().get(device_name(path, links.interface))


def _differs(path: Path, links: Links) -> bool:
    own, found = _own(path), system.interface(links.interface)
    if links.open:
        return bool(own) or (found is not None and OUTER in found.disciplines)
    device = device_name(path, links.interface)
    note = own.get(device)
    if found is None or note is None or len(own) > 1:
        return True
    wanted = _plan(path, links, found, note)
    return wanted.digest != note.plan or not _whole(wanted)


def _plan(path: Path, links: Links, found: Interface, note: Note) -> Plan:
    return plan(links, device_name(path, links.interface), found.mtu, note.kernel)


def _whole(wanted: Plan) -> bool:
    """All disciplines are there, and filters where they should be."""
    devices = {one.device for one in wanted.disciplines}
    there = {name: system.interface(name) for name in devices}
    return all(
        (found := there[one.device]) and found.disciplines.get(one.handle) == one.options[0]
        for one in wanted.disciplines
    ) and all(
        system.filters(*place)
        for place in {(one.device, one.parent) for one in (*wanted.policers, *wanted.peers)}
    )


def _shape(path: Path, links: Links) -> None:
    device = device_name(path, links.interface)
    found = system.interface(links.interface)
    if found is None:
        raise BoardError(f"there is no interface {links.interface}")
    note = _note(path, links)
    if note is None:
        note = _begin(path, links, device, found)
    if lack := lacking(links, note.kernel):
        raise BoardError(f"{path}: {lack}")
    wanted = _plan(path, links, found, note)
    _save(device, replace(note, plan="", peers=""))
    switch(links.interface, note.offloads, on=False)
    run(("ip", "link", "set", "dev", links.interface, "gso_max_segs", str(_ONE_FRAME)))
    for word, handle, is_open in (
        ("root", OUTER, links.up.open),
        ("ingress", INGRESS, links.down.open),
    ):
        if is_open and handle in found.disciplines:
            run(("tc", "qdisc", "del", "dev", links.interface, word))
    _make(wanted, found, same_peers=note.peers == wanted.peers_digest)
    done = replace(note, down=not links.down.open, plan=wanted.digest, peers=wanted.peers_digest)
    _save(device, done)


def _begin(path: Path, links: Links, device: str, found: Interface) -> Note:
    """A device of our own with a note of how the interface is; nothing else has changed so far."""
    for other in system.notes().values():
        if other is not None and other.interface == links.interface:
            raise BoardError(f"{links.interface} is shaped already, by {other.testbed}")
    kinds = [kind for handle, kind in found.disciplines.items() if handle != OUTER]
    if kinds and OUTER not in found.disciplines:
        raise BoardError(
            f"{links.interface} has queueing disciplines of somebody else ({', '.join(kinds)}): "
            f"remove them first (tc qdisc del dev {links.interface} root, or ingress)"
        )
    capable = system.look()
    if lack := lacking(links, capable):
        raise BoardError(f"{path}: {lack}")
    segments = found.segments
    note = Note(str(path), found.name, tuple(offloads_on(found.name)), segments, capable)
    write_note(note)  # raises for too long a path, before anything is made
    works("ip", "link", "add", "name", device, "type", "ifb")  # it may be there
    _save(device, note)
    run(("ip", "link", "set", "dev", device, "up"))
    return note


def _make(wanted: Plan, found: Interface, same_peers: bool) -> None:
    """Disciplines, the filters of their queues, then those that send peers there."""
    for one in wanted.disciplines:
        if not (one.lasting and found.disciplines.get(one.handle) == one.options[0]):
            for command in one.commands():
                run(command)
    for policer in wanted.policers:
        works("tc", "filter", "del", "dev", policer.device, "parent", QUEUE)
        run(policer.command())
    places = dict.fromkeys((one.device, one.parent) for one in wanted.peers)
    if same_peers and all(system.filters(*place) for place in places):
        return
    for device, parent in places:
        if system.filters(device, parent):
            run(("tc", "filter", "del", "dev", device, "parent", parent))
    for chosen in wanted.peers:
        run(chosen.command())


def _save(device: str, note: Note) -> None:
    run(("ip", "link", "set", "dev", device, "alias", write_note(note)))


def _clear(device: str, note: Note | None) -> None:
    """Remove the shaping, the note last, so that an interrupted removal can be finished later."""
    if note is not None and (found := system.interface(note.interface)):
        if OUTER in found.disciplines:
            run(("tc", "qdisc", "del", "dev", found.name, "root"))
        if found.disciplines.get(INGRESS) == "ingress" and _is_ours(found.name, device):
            run(("tc", "qdisc", "del", "dev", found.name, "ingress"))
        switch(found.name, note.offloads, on=True)
        if note.segments:
            segments = str(note.segments)
            run(("ip", "link", "set", "dev", found.name, "gso_max_segs", segments))
    run(("ip", "link", "del", "dev", device))


def _clear_remains(path: Path) -> bool:
    """Remove shaping whose device was removed by hand; leave that of other files."""
    try:
        links = read_links(path)
        found = system.interface(links.interface)
    except BoardError:
        return False
    claimed = {note.interface for note in system.notes().values() if note is not None}
    if found is None or links.interface in claimed:
        return False
    remains = []
    if OUTER in found.disciplines:
        remains.append("root")
    ours = device_name(path, links.interface)
    if system.filters(found.name, INGRESS) and _is_ours(found.name, ours):
        remains.append("ingress")
    for word in remains:
        with suppress(CommandFailed):
            run(("tc", "qdisc", "del", "dev", found.name, word))
    return bool(remains)


def _is_ours(interface: str, device: str) -> bool:
    """Whether what comes in goes to our device, or to one that is gone, or nowhere yet."""
    actions = [
        action
        for one in system.filters(interface, INGRESS)
        for action in one.get("options", {}).get("actions", [])
    ]
    return all(
        action.get("kind") == "mirred" and action.get("to_dev", device) in (device, "*", "")
        for action in actions
    )
