"""The limit of open files: a lab of hundreds of links needs more than the usual 1,024 in one process.

Measured with 40 links: 3 a link in the capture, 2 in the relay, 2 a node in the keeper, 1 a peer in a broker.
"""

import resource

ENOUGH = (
    1 << 16
)  # for 20,000 links; without a bound, programs that we start would try to close a billion files


def raise_open_files() -> None:
    """Raise the limit as far as needed, and as far as the machine allows this user; children inherit it."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if most == resource.RLIM_INFINITY else min(most, ENOUGH)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
