"""A link with the namespaces that its ends stand in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.links.spec import LinkSpec


@dataclass(frozen=True, slots=True)
class Access:
    """A link and the namespace of its node; behind a router, also the router's own link."""

    spec: LinkSpec
    ns_fd: int
    router: "Access | None" = None
    is_router: bool = False

    @property
    def far_fd(self) -> int | None:
        """The namespace of the far end; None: the core."""
        return None if self.router is None else self.router.ns_fd


def by_far_end(links: Iterable[Access]) -> Iterator[tuple[int | None, list[Access]]]:
    """The links that end in the core, then those of each router: whoever is nearer to the core comes first."""
    groups: dict[int | None, list[Access]] = {}
    for link in links:
        groups.setdefault(link.far_fd, []).append(link)
    for far_fd in sorted(groups, key=lambda fd: fd is not None):
        yield far_fd, groups[far_fd]
