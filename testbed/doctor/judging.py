"""What the facts mean for somebody who wants to run labs here: what each missing thing costs, and what helps."""

from testbed.doctor import engines, links, remedies, room
from testbed.doctor.facts import Facts
from testbed.doctor.finding import Check, lack

OLDEST_PYTHON = (3, 11)


def judge(facts: Facts) -> tuple[Check, ...]:
    """All findings, in the order in which they matter."""
    return (
        python(facts),
        links.namespaces(facts),
        links.netem(facts),
        links.tbf(facts),
        links.relay(facts),
        engines.engine(facts),
        engines.image(facts),
        *engines.platforms(facts),
        room.memory(facts),
        room.cores(facts),
        room.disk(facts),
        room.open_files(facts),
        room.processes(facts),
        room.inotify(facts),
        links.receive_buffer(facts),
        leftovers(facts),
    )


def python(facts: Facts) -> Check:
    """Old interpreters lack parts of the language that we use."""
    found = ".".join(str(part) for part in facts.python)
    if facts.python[:2] >= OLDEST_PYTHON:
        return Check("Python", "ok", found)
    return Check("Python", "missing", found, "nothing works", "install Python 3.11 or later")


def leftovers(facts: Facts) -> Check:
    """What crashed labs have left takes memory, and may hold what a new lab needs."""
    if not facts.orphans:
        return Check("leftovers", "ok", "none of crashed labs")
    return lack(
        "leftovers",
        "limited",
        f"{facts.orphans} of crashed labs",
        "memory and processor time, which measurements may notice",
        (remedies.remove_orphans(),),
        "",
    )
