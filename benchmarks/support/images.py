"""The node image in the benchmark's own engine: copied from the machine's engine if that has it, else made by `up`."""

import docker
from docker.errors import DockerException

from testbed.backends.image_recipe import REPOSITORY
from testbed.errors import TestbedError


def copy_images(address: str) -> None:
    """Copy what the machine's engine has; saves the half minute of building."""
    own = docker.DockerClient(base_url=address)
    try:
        machines = docker.from_env()
        here = machines.version()["Arch"]
        for image in machines.images.list(f"{REPOSITORY}-node"):
            if image.attrs["Architecture"] == here:
                own.images.load(b"".join(image.save(named=True)))
        machines.close()
    except DockerException:
        return  # no engine, or none that answers us: `up` makes the image
    finally:
        own.close()


def image_in_use(address: str, lab_label: str) -> str:
    """The image that the containers with this label run."""
    own = docker.DockerClient(base_url=address)
    try:
        found = own.containers.list(all=True, filters={"label": lab_label})
        if not found:
            raise TestbedError("the benchmark's lab has no containers")
        return str(found[0].attrs["Config"]["Image"])
    finally:
        own.close()
