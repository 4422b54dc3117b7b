"""Judges the facts on a machine: what each missing capability costs a lab, and which command helps."""

from testbed.backends.docker.platforms import Machine, Platform
from testbed.backends.docker.platforms import judge as judge_platform
from testbed.doctor import remedies
from testbed.doctor.facts import Facts
from testbed.doctor.remedies import Check, Repair, Status, lack


def size(count: int) -> str:
    """Bytes as text, in the largest unit of which there is at least one."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1024:.0f} KiB"


# Links: making, shaping and capturing them.


AMPLE_RECEIVE_BUFFER = 4 << 20


def namespaces(facts: Facts) -> Check:
    """Network namespaces, without which no lab can run."""
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
    """netem, the kernel's emulator of delay, loss and rate."""
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
    """tbf, the kernel's rate limiter."""
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
    """Tap devices, which our own emulator needs."""
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
    """The kernel's buffer for packets that the capture has not read yet."""
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


# Containers, and the platforms of their programs.


BOARDS = ("linux/arm64", "linux/arm/v7")  # platforms of Raspberry Pis


def engine(facts: Facts) -> Check:
    """The Docker engine, and the right to put links into its containers."""
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
    """The image of node containers."""
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
    """Whether programs of Raspberry Pis run here."""
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
    """The repairs that enable this handler; none if qemu cannot be installed here."""
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


# Capacity for a lab: memory, processors, disk, open files, processes.


SPARK_MEMORY = 3 << 30  # driver, Python workers and the JVM together, measured on the demo's size
# 16 MiB of a node and its container's shim were measured; the rest is for its queue.
NODE_MEMORY = 25 << 20
LOW_DISK = 2 << 30
NO_DISK = 200 << 20
MANY_NODES = 500
FILES_PER_LINK = 3  # two sockets and a file: the capture holds more than keeper and relay do
SPARE_FILES = 64
AMPLE_FILES = 4096
TASKS_PER_CONTAINER = 13  # its process and the 12 threads of its shim, measured
MOST_TASKS = 1 << 22  # the maximum of a 64-bit kernel
SPARE_INOTIFY = 28
AMPLE_INOTIFY = 8192


def memory(facts: Facts) -> Check:
    """Memory for nodes and for the analysis."""
    nodes = max(0, facts.memory - SPARK_MEMORY) // NODE_MEMORY
    found = f"{size(facts.memory)} available"
    if facts.memory >= 2 * SPARK_MEMORY:
        return Check("memory", "ok", f"{found}, enough for about {nodes} nodes and the analysis")
    costs = f"labs of more than about {nodes} nodes with their analysis"
    if facts.memory < SPARK_MEMORY:
        costs = "the analysis may be ended by the kernel: Spark takes about 3 GiB"
    return Check("memory", "limited", found, costs, "close other programs, or add memory")


def cores(facts: Facts) -> Check:
    """Processor cores for nodes, links and capture."""
    found = f"{facts.cores}"
    if facts.cores > 1:
        return Check("CPU cores", "ok", found)
    costs = "nodes, links and capture share one core: delays of busy labs are the machine's"
    return Check("CPU cores", "limited", found, costs, "use a machine with two cores or more")


def disk(facts: Facts) -> Check:
    """Disk space for captures."""
    found = f"{size(facts.disk_free)} free in {facts.captures}"
    if facts.disk_free >= LOW_DISK:
        return Check("disk", "ok", found)
    status: Status = "limited" if facts.disk_free >= NO_DISK else "missing"
    costs = "long runs: packets that find the disk full are lost"
    fix = "remove old runs, or set TESTBED_CAPTURES to a folder with more space"
    return Check("disk", status, found, costs, fix)


def open_files(facts: Facts) -> Check:
    """The limit of open files, to which our processes raise their own."""
    links = max(0, facts.open_files - SPARE_FILES) // FILES_PER_LINK
    if facts.open_files >= AMPLE_FILES:
        return Check("open files", "ok", f"{facts.open_files} a process")
    return lack(
        "open files",
        "limited",
        f"{facts.open_files} a process",
        f"labs of more than {links} links cannot be captured",
        (remedies.raise_limit(facts.means.shell, AMPLE_FILES),),
        "",
    )


def processes(facts: Facts) -> Check:
    """The limit of processes: the smallest of the kernel's, the container's and systemd's."""
    left, setting = facts.tasks
    containers = max(0, left) // TASKS_PER_CONTAINER
    found = f"{left} more can start, about {containers} containers ({setting})"
    if containers >= MANY_NODES:
        return Check("processes", "ok", found)
    repairs: tuple[Repair, ...] = ()
    if setting in ("kernel.pid_max", "kernel.threads-max"):
        effect = "lets more processes run at once"
        repairs = (remedies.set_kernel(setting, MOST_TASKS, effect),)
    otherwise = f"raise {setting}: systemd calls it TasksMax, Docker --pids-limit"
    costs = f"labs of more than about {containers} containers"
    return lack("processes", "limited", found, costs, repairs, otherwise)


def inotify(facts: Facts) -> Check:
    """inotify instances: with cgroup v2 the engine needs one for each container."""
    if facts.inotify is None:
        return Check("inotify instances", "ok", "not needed (cgroup v1)")
    found = f"{facts.inotify} a user"
    containers = max(0, facts.inotify - SPARE_INOTIFY)
    if containers >= MANY_NODES:
        return Check("inotify instances", "ok", found)
    effect = f"lets each user have {AMPLE_INOTIFY} inotify instances"
    return lack(
        "inotify instances",
        "limited",
        found,
        f"of more than about {containers} containers, the engine cannot watch some for exhausted memory",
        (remedies.set_kernel("fs.inotify.max_user_instances", AMPLE_INOTIFY, effect),),
        "",
    )


OLDEST_PYTHON = (3, 11)


def judge(facts: Facts) -> tuple[Check, ...]:
    """All checks, the most important first."""
    return (
        python(facts),
        namespaces(facts),
        netem(facts),
        tbf(facts),
        relay(facts),
        engine(facts),
        image(facts),
        *platforms(facts),
        memory(facts),
        cores(facts),
        disk(facts),
        open_files(facts),
        processes(facts),
        inotify(facts),
        receive_buffer(facts),
        leftovers(facts),
    )


def python(facts: Facts) -> Check:
    """The version of Python."""
    found = ".".join(str(part) for part in facts.python)
    if facts.python[:2] >= OLDEST_PYTHON:
        return Check("Python", "ok", found)
    return Check("Python", "missing", found, "nothing works", "install Python 3.11 or later")


def leftovers(facts: Facts) -> Check:
    """Orphans of crashed labs, which take memory and may block a new lab."""
    if not facts.orphans:
        return Check("leftovers", "ok", "none of crashed labs")
    return lack(
        "leftovers",
        "limited",
        f"{facts.orphans} of crashed labs",
        "memory and processor time, which measurements may notice",
        (remedies.remove_orphans(),),
        "",
    )
