"""Can links be made, shaped and captured here?"""

from testbed.doctor import remedies
from testbed.doctor.facts import Facts
from testbed.doctor.finding import Check, Repair, lack
from testbed.doctor.sizes import size

AMPLE_RECEIVE_BUFFER = 4 << 20


def namespaces(facts: Facts) -> Check:
    """Without them there is no lab."""
    able, reason = facts.namespaces
    if able:
        return Check("network namespaces", "ok", reason)
    repairs: tuple[Repair, ...] = ()
    if facts.refusing is not None:
        effect = "lets ordinary users make namespaces"
        repairs = (remedies.set_kernel(*facts.refusing, effect),)
    otherwise = "run as root; in a container, give it --cap-add SYS_ADMIN,NET_ADMIN"
    return lack("network namespaces", "missing", reason, "no lab can run here", repairs, otherwise)


def netem(facts: Facts) -> Check:
    """The kernel's own emulator of bad links."""
    if facts.netem:
        return Check("netem", "ok", "the kernel delays, loses and limits")
    return lack(
        "netem",
        "limited",
        "not in this kernel",
        "the relay shapes links instead: exact, but it takes CPU time for each packet",
        _module(facts, "sch_netem"),
        "a kernel with sch_netem, such as your distribution's own",
    )


def tbf(facts: Facts) -> Check:
    """The kernel's limiter of rates."""
    if facts.tbf:
        return Check("tbf", "ok", "the kernel limits rates")
    return lack(
        "tbf",
        "limited",
        "not in this kernel",
        "`emulator: tbf`",
        _module(facts, "sch_tbf"),
        "a kernel with sch_tbf, such as your distribution's own",
    )


def relay(facts: Facts) -> Check:
    """Our own emulator needs tap devices."""
    if not facts.tun:
        return Check("relay", "ok", "/dev/net/tun works")
    repairs = (remedies.share_tun(),) if facts.tun_forbidden else _module(facts, "tun")
    return lack(
        "relay",
        "limited" if facts.netem else "missing",
        facts.tun,
        "`emulator: relay`" if facts.netem else "links with delay, jitter or loss",
        repairs,
        "in a container: --device /dev/net/tun; else a kernel with tun",
    )


def receive_buffer(facts: Facts) -> Check:
    """Where the kernel keeps packets that the capture has not read yet."""
    if facts.root:
        return Check("capture buffers", "ok", "as large as needed (root)")
    found = f"{size(facts.receive_buffer)} a link end"
    if facts.receive_buffer >= AMPLE_RECEIVE_BUFFER:
        return Check("capture buffers", "ok", found)
    effect = f"lets every program have {size(AMPLE_RECEIVE_BUFFER)} of buffer a socket"
    return lack(
        "capture buffers",
        "limited",
        found,
        "bursts on links beyond about 100 Mbit/s may be missing in captures (they are counted)",
        (remedies.set_kernel("net.core.rmem_max", AMPLE_RECEIVE_BUFFER, effect),),
        "",
    )


def _module(facts: Facts, name: str) -> tuple[Repair, ...]:
    return (remedies.load_module(name),) if name in facts.means.modules else ()
