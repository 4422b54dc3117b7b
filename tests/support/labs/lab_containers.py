"""The containers of a lab, with everything that the engine knows of them."""

from docker.models.containers import Container

from testbed.backends.docker.containers import LAB_DIR_LABEL
from testbed.backends.docker.engine import LOOK_TIMEOUT_S, engine
from testbed.places import LabPlace


def marked(lab: LabPlace) -> list[Container]:
    """The containers of this lab; the engine inspects each with a request of its own."""
    mine = {"label": f"{LAB_DIR_LABEL}={lab.folder}"}
    return engine(LOOK_TIMEOUT_S).containers.list(all=True, filters=mine, ignore_removed=True)
