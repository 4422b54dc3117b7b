"""Removes everything that carries a lab's mark, of any backend and in any state."""

from testbed.backends.common.names import local_backend
from testbed.backends.docker.build_folder import remove_build_folder
from testbed.errors import MissingCapability, TestbedError
from testbed.keeper.processes import end_marked
from testbed.places import LabPlace


def remove_lab(lab: LabPlace, backend: str | None) -> list[str]:
    """Remove processes by their environment, then containers by their label; return sentences on what was removed.

    `backend` is that of the lab's record, None without a record. After an error containers may be left: keep the lab's
    folder, so that another `down` can search again.
    """
    removed = end_marked(lab) + remove_build_folder(lab)
    if backend is not None and local_backend(backend) != "docker":
        return removed
    from testbed.backends.docker.containers import remove_marked
    from testbed.backends.docker.engine import EngineError

    try:
        return removed + remove_marked(lab)
    except MissingCapability as error:
        if backend is None or not _nodes_were_made(lab):
            return removed
        raise _left(lab, error) from error
    except EngineError as error:
        raise _left(lab, error) from error


def _nodes_were_made(lab: LabPlace) -> bool:
    """Whether there can be containers: each is made after its node's folder."""
    return lab.node("").exists()


def _left(lab: LabPlace, error: TestbedError) -> TestbedError:
    return TestbedError(
        f"the engine does not answer, so containers of lab {lab.name} may be left ({error})",
        f"`make engine`, then `testbed down {lab.name}` again",
    )
