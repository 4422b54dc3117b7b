"""Where Spark computes: all cores of this machine, Spark that is kept ready, or a cluster whose master answers."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from testbed.errors import InputError
from testbed.places import state_root

if TYPE_CHECKING:
    from analysis.spark.warm import WarmSpark

HERE = "local[*]"
CLUSTER = "spark://"
PATIENCE_S = 5.0


def warm_spark() -> "WarmSpark":
    """Spark that `testbed spark start` keeps ready for this user."""
    from analysis.spark.warm import WarmSpark

    return WarmSpark(state_root() / ".spark")


def default_master() -> str:
    """Spark that is kept ready, if it has our code; else all cores of this machine."""
    warm = warm_spark()
    return warm.master if warm.is_current() else HERE


def ready_drawer(master: str | None = None) -> Path | None:
    """The socket of the process that draws charts, which is kept ready beside Spark; None if this master has none."""
    warm = warm_spark()
    if not warm.beside.exists() or (master or default_master()) != warm.master:
        return None
    return warm.beside


def chosen_master(asked: str | None) -> str:
    """InputError if it is no master, or not reachable: Spark itself would find out after a minute."""
    if asked is None:
        return default_master()
    if asked.startswith("local"):
        return asked
    if not asked.startswith(CLUSTER):
        raise InputError(
            f"--master {asked} is not a Spark master",
            "write spark://HOST:PORT, or local[4] for four cores of this machine",
        )
    masters = asked.removeprefix(CLUSTER).split(",")  # the others are standby masters
    troubles = [trouble for one in masters if (trouble := _unreachable(one))]
    if len(troubles) == len(masters):
        raise InputError(
            f"no Spark master answers at {asked}: {troubles[0]}",
            "start one, or remove --master to run Spark on this machine",
        )
    return asked


def _unreachable(master: str) -> str | None:
    """Why it is not reachable, or None."""
    try:
        place = urlsplit(f"//{master}")
        if not place.hostname or not place.port:
            return "HOST:PORT is missing"
        socket.create_connection((place.hostname, place.port), PATIENCE_S).close()
    except (OSError, ValueError) as error:
        return str(error)
    return None
