"""Distribute the tests over several processes.

The tests of a group run in one process, one after the other. The longest groups begin first. Tests that take very long
are left to `make test-long`. pytest 9.2 silently ignores xdist's own groups (`--dist loadgroup`), so the rule is ours.
"""

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SPARK = "those that share the Spark session"
SHARE_SPARK = frozenset(
    {
        "analysis/test_analysis_many_brokers.py",
        "analysis/test_analysis_spark.py",
        "docker/test_arm.py",
        "benchmarks/test_captures_benchmark.py",
        "analysis/test_captures_in_s3.py",
        "analysis/test_clocks_spark.py",
        "overlay/test_collection_in_a_lab.py",
        "simulation/test_delay_parts.py",
        "lab/test_events_during_moves.py",
        "lab/test_missing_deliveries.py",
        "analysis/test_load_spark.py",
        "analysis/test_many_runs.py",
        "simulation/test_overlay_beside_simulated.py",
        "analysis/test_packets_command.py",
        "analysis/test_pcap_source.py",
        "analysis/test_pcap_stream.py",
        "analysis/test_query.py",
        "analysis/test_report_browser.py",
        "papers/test_reproduce.py",
        "lab/test_scale.py",
        "links/test_router_chain.py",
        "links/test_shared_link.py",
        "analysis/test_foreign_protocols_in_runs.py",
        "simulation/test_sweep.py",
        "simulation/test_truth.py",
        "lab/test_whole_path.py",
    }
)
# The longest begin first, so that no process is left with a long file when the others have ended.
LONGEST_FIRST = (
    SPARK,
    "boards/test_boards_in_a_lab.py",
    "boards/test_playbooks_arm.py",
    "boards/test_playbooks.py",
    "lab/test_crashes.py",
    "docker/test_engine_crashes.py",
    "lab/test_readme.py",
    "lab/test_kill_at_any_moment.py",
    "docker/test_external_nodes.py",
    "links/test_netem_machine.py",
    "analysis/test_analysis_interrupted.py",
    "benchmarks/test_benchmarks.py",
    "docker/test_image.py",
    "docker/test_docker_backend.py",
    "benchmarks/test_brokers_benchmark.py",
    "overlay/test_alerts_survive.py",
    "nodes/test_broker_links.py",
    "nodes/test_hostile_peers.py",
    "simulation/test_simulation.py",
    "overlay/test_overlay_survives.py",
    "nodes/test_edge_on_loopback.py",
)
# Whole labs and their analysis, faults at every step, whole papers, images built from packages, the README and the
# benchmarks as users call them.
LONG = frozenset(
    {
        "overlay/test_alerts_survive.py",
        "analysis/test_analysis_either_java.py",
        "analysis/test_analysis_interrupted.py",
        "overlay/test_areas_in_a_lab.py",
        "overlay/test_areas_move_in_a_lab.py",
        "docker/test_arm.py",
        "benchmarks/test_benchmarks.py",
        "boards/test_board_capture.py",
        "boards/test_board_shaping.py",
        "boards/test_boards_in_a_lab.py",
        "benchmarks/test_brokers_benchmark.py",
        "benchmarks/test_captures_benchmark.py",
        "analysis/test_cluster.py",
        "overlay/test_collection_in_a_lab.py",
        "lab/test_crashes.py",
        "lab/test_disk_estimate.py",
        "docker/test_engine_crashes.py",
        "lab/test_events_during_moves.py",
        "docker/test_external_nodes.py",
        "nodes/test_hostile_peers.py",
        "docker/test_image.py",
        "analysis/test_java_archives.py",
        "lab/test_kill_at_any_moment.py",
        "benchmarks/test_links_benchmark.py",
        "simulation/test_overlay_beside_simulated.py",
        "overlay/test_overlay_survives.py",
        "boards/test_playbooks.py",
        "boards/test_playbooks_arm.py",
        "lab/test_plugins.py",
        "lab/test_readme.py",
        "lab/test_replay.py",
        "papers/test_reproduce.py",
        "papers/test_reproduce_cells.py",
        "lab/test_scale.py",
        "simulation/test_simulation.py",
        "benchmarks/test_simulation_benchmark.py",
        "simulation/test_sweep.py",
        "simulation/test_truth.py",
        "lab/test_tutorial.py",
        "analysis/test_warm_spark.py",
        "lab/test_whole_path.py",
    }
)


def group(nodeid: str) -> str:
    """The group of a test: tests of a file stay together, because they may share fixtures that are costly to make."""
    file = _file(nodeid)
    return SPARK if file in SHARE_SPARK else file


def is_long(nodeid: str) -> bool:
    """Whether the test is left to `make test-long`."""
    return _file(nodeid) in LONG


def _file(nodeid: str) -> str:
    return nodeid.split("::", maxsplit=1)[0].removeprefix("tests/integration/")


def turn(nodeid: str) -> int:
    """The position of the test's group among all groups."""
    name = group(nodeid)
    return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)


class Groups(LoadScopeScheduling):
    """Give the next whole group to a process that is nearly done."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the rest of a dead process to another one, and return the test that ended it.

        xdist's own method would run that test again, in one new process after the other.
        """
        left = self.assigned_work.pop(node)
        pending = [
            (tests, name) for tests in left.values() for name, done in tests.items() if not done
        ]
        if not pending:
            return None
        tests, ended = pending[0]
        tests[ended] = True
        self.workqueue.update({name: each for name, each in left.items() if not all(each.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return ended
