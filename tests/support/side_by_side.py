"""Several processes run the tests: which belong to one process, one after the other, which of these begin first, and
which take so long that they are left to `make test-long`.

xdist's own groups (`--dist loadgroup`) are silently ignored with pytest 9.2, so the rule is ours.
"""

from xdist.scheduler import LoadScopeScheduling

SPARK = "those that share the Spark session"
SHARE_SPARK = frozenset(
    {
        "test_analysis_many_brokers.py",
        "test_analysis_spark.py",
        "test_arm.py",
        "test_captures_benchmark.py",
        "test_captures_in_s3.py",
        "test_collection_in_a_lab.py",
        "test_delay_parts.py",
        "test_events_during_moves.py",
        "test_load_spark.py",
        "test_many_runs.py",
        "test_overlay_beside_simulated.py",
        "test_packets_command.py",
        "test_pcap_source.py",
        "test_pcap_stream.py",
        "test_query.py",
        "test_report_browser.py",
        "test_reproduce.py",
        "test_scale.py",
        "test_shared_line.py",
        "test_strangers_in_runs.py",
        "test_sweep.py",
        "test_truth.py",
        "test_whole_path.py",
    }
)
# What takes longest begins first, so that no process is left with a long file when the others have ended.
LONGEST_FIRST = (
    SPARK,
    "test_boards_in_a_lab.py",
    "test_playbooks_arm.py",
    "test_playbooks.py",
    "test_crashes.py",
    "test_engine_crashes.py",
    "test_readme.py",
    "test_kill_at_any_moment.py",
    "test_guests.py",
    "test_analysis_interrupted.py",
    "test_benchmarks.py",
    "test_image.py",
    "test_docker_backend.py",
    "test_brokers_benchmark.py",
    "test_alerts_survive.py",
    "test_broker_links.py",
    "test_hostile_peers.py",
    "test_simulation.py",
    "test_overlay_survives.py",
    "test_edge_on_loopback.py",
)
# Whole labs and their analysis, faults at every step, whole papers, the README and the benchmarks as users call them.
LONG = frozenset(
    {
        "test_alerts_survive.py",
        "test_analysis_interrupted.py",
        "test_areas_in_a_lab.py",
        "test_areas_move_in_a_lab.py",
        "test_arm.py",
        "test_benchmarks.py",
        "board_programs/test_board_capture.py",
        "board_programs/test_board_shaping.py",
        "test_boards_in_a_lab.py",
        "test_brokers_benchmark.py",
        "test_cluster.py",
        "test_collection_in_a_lab.py",
        "test_crashes.py",
        "test_engine_crashes.py",
        "test_events_during_moves.py",
        "test_guests.py",
        "test_hostile_peers.py",
        "test_kill_at_any_moment.py",
        "test_overlay_beside_simulated.py",
        "test_overlay_survives.py",
        "test_playbooks.py",
        "test_playbooks_arm.py",
        "test_readme.py",
        "test_replay.py",
        "test_reproduce.py",
        "test_reproduce_cells.py",
        "test_scale.py",
        "test_simulation.py",
        "test_simulation_benchmark.py",
        "test_sweep.py",
        "test_truth.py",
        "test_whole_path.py",
    }
)


def group(nodeid: str) -> str:
    """The tests of a file stay together: they may share what is costly to make."""
    file = _file(nodeid)
    return SPARK if file in SHARE_SPARK else file


def is_long(nodeid: str) -> bool:
    """Whether it is left to `make test-long`."""
    return _file(nodeid) in LONG


def _file(nodeid: str) -> str:
    return nodeid.split("::", maxsplit=1)[0].removeprefix("tests/integration/")


def turn(nodeid: str) -> int:
    """When its group begins, among the others."""
    name = group(nodeid)
    return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)


class Groups(LoadScopeScheduling):
    """A process that is nearly done gets the next whole group."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
