"""The names of backends. A name says which nodes are on boards, and which on this machine."""

BACKENDS = ("docker", "netns")
BOARDS = (
    "boards"  # the place of a deployment; `boards+docker`: some nodes are there, the others here
)
SIMULATED = "simulated"  # no lab can be up on it: its time is virtual


def has_boards(name: str) -> bool:
    """Whether a lab on this backend has nodes on boards."""
    return name.split("+", maxsplit=1)[0] == BOARDS


def local_backend(name: str) -> str | None:
    """The backend of this machine's nodes; None: all are on boards."""
    return name.partition("+")[2] or None if has_boards(name) else name
