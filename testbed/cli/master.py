"""Where Spark computes: all cores of this machine, or a cluster whose master answers."""

import socket
from urllib.parse import urlsplit

from testbed.errors import InputError

HERE = "local[*]"
CLUSTER = "spark://"
PATIENCE_S = 5.0


def chosen_master(asked: str | None) -> str:
    """InputError if it is none, or nobody is there: Spark itself would find out after a minute."""
    if asked is None or asked.startswith("local"):
        return asked or HERE
    if not asked.startswith(CLUSTER):
        raise InputError(
            f"--master {asked} is none that work can be sent to",
            "spark://HOST:PORT, or local[4] for four cores of this machine",
        )
    masters = asked.removeprefix(CLUSTER).split(",")  # the others stand by
    troubles = [trouble for one in masters if (trouble := _unreachable(one))]
    if len(troubles) == len(masters):
        raise InputError(
            f"no Spark master answers at {asked}: {troubles[0]}",
            "start one, or leave --master out: all cores of this machine are taken then",
        )
    return asked


def _unreachable(master: str) -> str | None:
    """Why nobody is there, or None."""
    try:
        place = urlsplit(f"//{master}")
        if not place.hostname or not place.port:
            return "HOST:PORT is missing"
        socket.create_connection((place.hostname, place.port), PATIENCE_S).close()
    except (OSError, ValueError) as error:
        return str(error)
    return None
