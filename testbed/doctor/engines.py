"""Can nodes be containers here, and for which processors?"""

from testbed.backends.platforms import Machine, Platform
from testbed.backends.platforms import judge as judge_platform
from testbed.doctor import remedies
from testbed.doctor.facts import Facts
from testbed.doctor.finding import Check, Repair, lack

BOARDS = ("linux/arm64", "linux/arm/v7")  # what Raspberry Pis are


def engine(facts: Facts) -> Check:
    """The Docker engine, and whether we may put links into its containers."""
    answers, reason = facts.engine
    if not answers:
        return lack(
            "Docker engine",
            "limited",
            reason,
            "nodes run as processes (netns backend) instead of containers",
            _start(facts),
            _how_to_start_it_by_hand(facts),
        )
    if not facts.root:
        return Check(
            "Docker engine",
            "limited",
            f"{reason}, but you are not root",
            "links cannot be put into containers; the netns backend serves instead",
            "sudo",
        )
    return Check("Docker engine", "ok", reason)


def image(facts: Facts) -> Check:
    """What node containers run."""
    obtainable, reason = facts.image
    if obtainable:
        return Check("node image", "ok", reason)
    if not facts.engine[0]:
        repairs, otherwise = _start(facts), _how_to_start_it_by_hand(facts)
    else:
        repairs = (remedies.install("mmdebstrap"),) if facts.means.apt else ()
        otherwise = "a registry that answers, or a Debian or Ubuntu with mmdebstrap"
    costs = "the docker backend; the netns backend serves instead"
    return lack("node image", "limited", reason, costs, repairs, otherwise)


def platforms(facts: Facts) -> tuple[Check, ...]:
    """Programs of Raspberry Pis."""
    return tuple(_platform(facts, Platform.parse(name)) for name in BOARDS)


def _platform(facts: Facts, wanted: Platform) -> Check:
    verdict = judge_platform(wanted, facts.processor)
    if verdict.runs:
        return Check(f"{wanted} programs", "ok", verdict.how)
    return lack(
        f"{wanted} programs",
        "limited",
        verdict.how,
        f"nodes with `platform: {wanted}`",
        _emulate(facts.processor, wanted.handler, facts.means.apt),
        verdict.fix,
    )


def _emulate(machine: Machine, name: str, apt: bool) -> tuple[Repair, ...]:
    """What makes the kernel start programs through this handler; nothing if qemu cannot be installed here."""
    installed = name in machine.installed
    if not installed and not apt:
        return ()
    repairs = [] if installed else [remedies.install("qemu-user-static", "binfmt-support")]
    if not machine.mounted:
        repairs.append(remedies.mount_binfmt())
    there = machine.handlers.get(name)
    if there is not None and there.fixed:
        return (*repairs, remedies.enable_handler(name))
    if there is not None:
        repairs.append(remedies.forget_handler(name))
    return (*repairs, remedies.register_handler(name))


def _start(facts: Facts) -> tuple[Repair, ...]:
    means = facts.means
    if means.docker_host:
        return ()
    if means.engine_script is not None and (means.dockerd or means.apt):
        return (remedies.start_engine(means.engine_script),)
    if not means.systemd or not (means.dockerd or means.apt):
        return ()
    installed = () if means.dockerd else (remedies.install("docker.io"),)
    return (*installed, remedies.start_engine(None))


def _how_to_start_it_by_hand(facts: Facts) -> str:
    if facts.means.docker_host:
        return f"start the engine of {facts.means.docker_host}, or unset DOCKER_HOST"
    return "install and start a Docker engine as your system does it"
