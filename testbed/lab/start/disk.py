"""Whether the disk has space for a run: a warning before it begins."""

import shutil
from contextlib import suppress
from pathlib import Path

from testbed.errors import InputError
from testbed.places import captures_root
from testbed.progress import Emit, Warned
from testbed.recording.disk_estimate import MARGIN, DiskEstimate, estimate_disk
from testbed.topology.model import Topology


def size_text(count: float) -> str:
    """Bytes as text, in the largest decimal unit of which there is at least one."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} B"


def free_bytes(folder: Path) -> int:
    """Free space where this folder is, or would be."""
    present = next(each for each in (folder, *folder.parents) if each.is_dir())
    return shutil.disk_usage(present).free


def warn_of_a_full_disk(
    topology: Topology,
    emit: Emit,
    *,
    simulated: bool = False,
    runs: int = 1,
    folder: Path | None = None,
) -> None:
    """Warn if `runs` such runs may not fit into the captures folder (or `folder`)."""
    with suppress(InputError):  # a scenario that cannot be compiled is refused when it is played
        estimate = estimate_disk(topology, simulated=simulated).times(runs)
        target = folder or captures_root()
        free = free_bytes(target)
        if sentence := shortage(estimate, free, target, runs):
            emit(Warned(sentence))


def shortage(estimate: DiskEstimate, free: int, folder: Path, runs: int = 1) -> str:
    """A sentence if the disk may become full; empty if there is space, also with a margin."""
    if estimate.total * MARGIN <= free:
        return ""
    what = "the run takes" if runs == 1 else f"{runs} runs take"
    return (
        f"{what} about {size_text(estimate.total)}, up to {size_text(estimate.total * MARGIN)}, and "
        f"{folder} has {size_text(free)} free: `testbed runs prune` makes space, or put the captures "
        "elsewhere with TESTBED_CAPTURES"
    )
