"""The order in which the far ends of links are processed."""

from testbed.links.spec import Attachment, LinkSpec, by_far_end


def link(number: int, router: Attachment | None = None) -> Attachment:
    spec = LinkSpec(f"n{number}", number, f"10.77.0.{number}", 16, "", 1500, "")
    return Attachment(spec, ns_fd=100 + number, router=router)


def test_links_to_the_core_come_first_and_links_of_each_router_follow_together() -> None:
    one, two = link(1), link(2)
    members = [link(3, two), link(4, one), link(5, two)]
    groups = dict(by_far_end([*members, one, two, link(6)]))
    names = {fd: [member.spec.node for member in group] for fd, group in groups.items()}
    assert names == {None: ["n1", "n2", "n6"], 102: ["n3", "n5"], 101: ["n4"]}
    assert next(iter(groups)) is None


def test_links_behind_an_outer_router_come_before_those_behind_an_inner_one() -> None:
    outer = link(1)
    middle = link(2, outer)
    inner = link(3, middle)
    links = [link(4, inner), link(5, outer), link(6, middle), inner, middle, outer]
    groups = {fd: [one.spec.node for one in group] for fd, group in by_far_end(links)}
    assert list(groups) == [None, 101, 102, 103]
    assert groups == {None: ["n1"], 101: ["n5", "n2"], 102: ["n6", "n3"], 103: ["n4"]}
    assert [one.spec.node for one in link(4, inner).routers] == ["n3", "n2", "n1"]


def test_without_routers_everything_ends_in_the_core() -> None:
    assert [fd for fd, _ in by_far_end([link(1), link(2)])] == [None]
    assert list(by_far_end([])) == []
