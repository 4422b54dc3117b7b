"""The processes of a lab, and how long they waited for a processor."""

from support.labs import lab_containers
from support.processor_wait import ProcessorWait
from testbed.keeper import processes
from testbed.places import LabPlace


def processor_wait(lab: LabPlace, *, with_containers: bool = False) -> ProcessorWait:
    """How long nodes, relays and the other processes of the lab wait for a processor from now on."""
    pids = [process.pid for process in processes.marked(lab)]
    if with_containers:
        pids += [each.attrs["State"]["Pid"] for each in lab_containers.marked(lab)]
    return ProcessorWait(pids)
