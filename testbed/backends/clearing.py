"""Removing everything that carries a lab's mark, whichever backend made it and whatever state it is in."""

from testbed.backends.engine import engine_answers
from testbed.keeper.processes import end_marked
from testbed.places import LabPlace


def clear_away(lab: LabPlace) -> list[str]:
    """Containers by their label, processes by their environment; what was removed, as sentences."""
    removed = []
    answers, _ = engine_answers()
    if answers:
        from testbed.backends.docker import remove_marked

        removed += remove_marked(lab)
    return removed + end_marked(lab)
