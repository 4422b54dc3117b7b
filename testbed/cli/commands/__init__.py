"""The commands, one module each; a module is imported when one of its commands is called.

To add a command: a module here with a function `register(app)`, and an entry below. All modules together take half a
second to import, so `testbed --help` shows the help from here. It is the first paragraph of the command's docstring
(`tests/unit/testbed/cli/test_commands_by_name.py` compares them).
"""

from typing import NamedTuple


class Listed(NamedTuple):
    """A command in `testbed --help`, and the module that has it."""

    module: str
    help: str
    draws_at_once: bool = (
        False  # the process that draws charts starts before the command is imported
    )


# In the order of `testbed --help`.
COMMANDS = {
    "run": Listed("run", "Do it all: up, play, down, analyze, report."),
    "simulate": Listed(
        "run",
        "Run the whole scenario in virtual time: the nodes' own algorithms on computed links, the same each time.",
    ),
    "report": Listed(
        "report",
        "Write report.html of a run; analyses it first if that was not done yet.",
        draws_at_once=True,
    ),
    "sweep": Listed(
        "sweep",
        "Run a file with all combinations of some values, each several times with other seeds; one report on all.",
    ),
    "analyze": Listed(
        "analyze",
        "Turn the captures of runs into hops, overhead and delay (metrics/*.parquet) with Spark.",
    ),
    "compare": Listed(
        "compare",
        "Set runs side by side: delays, hops, copies, control traffic and losses, as ratios to the first.",
    ),
    "why": Listed(
        "why",
        "Say why a message was late or lost: its hops, what each link carried before it, faults and link changes "
        "near it.",
    ),
    "packets": Listed(
        "export",
        "Count the packets of any captures, and write their header fields as Parquet, with Spark.",
    ),
    "job": Listed(
        "export",
        "Write our code and a program for spark-submit: `packets` and `analyze` on a cluster that has neither.",
    ),
    "dissector": Listed(
        "export",
        "Write a dissector for Wireshark and tshark: our messages in captures, field by field (testbed.priority, ...).",
    ),
    "runs": Listed(
        "runs",
        "List the folders of runs with what they take on the disk, and remove those that are not needed.",
    ),
    "query": Listed(
        "query", "Query the metrics of one or several runs, or of a sweep, in Spark SQL."
    ),
    "spark": Listed(
        "spark", "Keep Spark ready between commands, so that the next analyses do not wait for it."
    ),
    "reproduce": Listed("reproduce", "Run a paper's experiments and set its numbers beside ours."),
    "up": Listed(
        "up",
        "Start a lab, or bring a running one in line with its file. Returns when all nodes are connected.",
    ),
    "down": Listed(
        "down", "End a lab and remove everything it made. Run folders with captures and logs stay."
    ),
    "status": Listed("status", "Show the labs that are up; with a name, each of its nodes."),
    "play": Listed(
        "play", "Play the topology's scenario, or one from a file, on a lab that is up."
    ),
    "inject": Listed("play", "Let a sensor publish one message now, at its place."),
    "logs": Listed("logs", "Show what nodes logged, in order of time."),
    "deploy": Listed(
        "deploy",
        "Bring the nodes with `place: boards` to Raspberry Pis, start the others here, and connect them all.",
    ),
    "collect": Listed(
        "deploy",
        "Collect what boards have written: captures and logs. Files that are here already are not fetched again.",
    ),
    "inventory": Listed(
        "deploy",
        "Write an inventory for the nodes with `place: boards` of a topology, to be completed by hand.",
    ),
    "replay": Listed(
        "replay",
        "Play a run's publications and faults again, from its folder alone, and compare; or the messages of captures.",
    ),
    "watch": Listed(
        "watch",
        "Show delay and loss by level while a run goes on, from its captures and logs as they grow.",
    ),
    "events": Listed(
        "events",
        "Show everything that happens, in the order of time: publications, receptions, losses, faults, link changes,\n"
        "connections, marks, and what was done to the lab.",
    ),
    "validate": Listed(
        "validate",
        "Check topology files and scenarios; all problems at once, with line and column, and likely mistakes.",
    ),
    "plan": Listed(
        "plan",
        "Show what `up` would do now, step by step, and what happens in the scenario. Changes nothing.",
    ),
    "schema": Listed("schema", "Print the JSON Schema of topology files (for editors)."),
    "graph": Listed(
        "graph",
        "Draw a topology, or an overlay of brokers formed in virtual time with one publication followed through it.",
    ),
    "profiles": Listed(
        "profiles", "List the built-in link profiles, with where their numbers come from."
    ),
    "doctor": Listed("doctor", "List what this machine has, and what each missing thing costs."),
    "link": Listed(
        "link",
        "See and change the links of a lab that is up; each change stands in the run's manifest.",
    ),
    "node": Listed(
        "link",
        "Crash, stop and start nodes of a lab, on this machine or on boards; the run's manifest records it.",
    ),
    "image": Listed(
        "image",
        "The images that containers run. `up` makes what is missing by itself; here it can be done beforehand.",
    ),
}
