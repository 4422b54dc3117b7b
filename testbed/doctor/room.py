"""Is there room for a lab: memory, processors, disk, open files, processes?"""

from testbed.doctor import remedies
from testbed.doctor.facts import Facts
from testbed.doctor.finding import Check, Repair, Status, lack
from testbed.doctor.sizes import size

SPARK_MEMORY = 3 << 30  # driver, Python workers and the JVM together, measured on the demo's size
NODE_MEMORY = (
    25 << 20
)  # 16 MiB of a node and its container's shim were measured; the rest is for what it queues
LOW_DISK = 2 << 30
NO_DISK = 200 << 20
MANY_NODES = 500
FILES_PER_LINK = 3  # two ears and a file: the capture holds more than keeper and relay do
SPARE_FILES = 64
AMPLE_FILES = 4096
TASKS_PER_CONTAINER = 13  # its process and the 12 threads of its shim, measured
MOST_TASKS = 1 << 22  # what a 64-bit kernel allows
SPARE_INOTIFY = 28
AMPLE_INOTIFY = 8192


def memory(facts: Facts) -> Check:
    """For nodes and for the analysis."""
    nodes = max(0, facts.memory - SPARK_MEMORY) // NODE_MEMORY
    found = f"{size(facts.memory)} available"
    if facts.memory >= 2 * SPARK_MEMORY:
        return Check("memory", "ok", f"{found}, enough for about {nodes} nodes and the analysis")
    costs = f"labs of more than about {nodes} nodes with their analysis"
    if facts.memory < SPARK_MEMORY:
        costs = "the analysis may be ended by the kernel: Spark takes about 3 GiB"
    return Check("memory", "limited", found, costs, "close other programs, or add memory")


def cores(facts: Facts) -> Check:
    """For the nodes, and for whoever watches them."""
    found = f"{facts.cores}"
    if facts.cores > 1:
        return Check("CPU cores", "ok", found)
    costs = "nodes, links and capture share one core: delays of busy labs are the machine's"
    return Check("CPU cores", "limited", found, costs, "use a machine with two cores or more")


def disk(facts: Facts) -> Check:
    """For captures."""
    found = f"{size(facts.disk_free)} free in {facts.captures}"
    if facts.disk_free >= LOW_DISK:
        return Check("disk", "ok", found)
    status: Status = "limited" if facts.disk_free >= NO_DISK else "missing"
    costs = "long runs: packets that find the disk full are lost"
    fix = "remove old runs, or set TESTBED_CAPTURES to a folder with more room"
    return Check("disk", status, found, costs, fix)


def open_files(facts: Facts) -> Check:
    """Our processes raise their own limit as far as they may."""
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
    """Of the kernel, of a container or of systemd: the least of them counts."""
    left, setting = facts.tasks
    containers = max(0, left) // TASKS_PER_CONTAINER
    found = f"room for {left} more, about {containers} containers ({setting})"
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
    """With cgroup v2 the engine watches each container's memory through an inotify instance of its own."""
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
