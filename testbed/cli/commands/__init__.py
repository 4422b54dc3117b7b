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
    "run": Listed(
        "run",
        "Run a topology file: start the lab, play the scenario, end the lab, analyze the captures, write the report.",
    ),
    "simulate": Listed(
        "run",
        "Run a topology file in virtual time: the nodes' own algorithms on modelled links. The result is reproducible.",
    ),
    "report": Listed(
        "report",
        "Write report.html of a run. Analyze the run first if it has not been analyzed.",
        draws_at_once=True,
    ),
    "sweep": Listed(
        "sweep",
        "Run a topology file with all combinations of some values, several trials each, and write one report.",
    ),
    "analyze": Listed(
        "analyze",
        "Compute hops, overhead and delay (metrics/*.parquet) from the captures of runs, with Spark.",
    ),
    "compare": Listed(
        "compare",
        "Compare runs with the first: delays, hops, copies, control traffic and losses, as ratios.",
    ),
    "why": Listed(
        "why",
        "Explain why a message was late or lost: its hops, what each link carried before, faults and link changes "
        "near it.",
    ),
    "packets": Listed(
        "export",
        "Count the packets of captures and write their header fields as Parquet, with Spark.",
    ),
    "job": Listed(
        "export",
        "Write testbed's code and a program for spark-submit, to run `packets` and `analyze` on any Spark cluster.",
    ),
    "dissector": Listed(
        "export",
        "Write a dissector for Wireshark and tshark that decodes testbed's messages (fields: testbed.priority, ...).",
    ),
    "runs": Listed(
        "runs",
        "List, show, keep and remove the folders of runs.",
    ),
    "query": Listed(
        "query", "Query the metrics of one or several runs, or of a sweep, in Spark SQL."
    ),
    "spark": Listed(
        "spark",
        "Keep a Spark session running between commands, so that analyses start without delay.",
    ),
    "reproduce": Listed(
        "reproduce",
        "Repeat a paper's experiments and compare the results with the paper's numbers.",
    ),
    "up": Listed(
        "up",
        "Start a lab, or change a running lab to match its file. The command returns when all nodes are connected.",
    ),
    "down": Listed(
        "down",
        "End a lab and remove its processes, containers and links. The run folder with captures and logs stays.",
    ),
    "status": Listed("status", "Show the labs that are up, or the nodes of one lab."),
    "play": Listed(
        "play", "Play the topology's scenario, or a scenario from a file, on a lab that is up."
    ),
    "inject": Listed("play", "Publish one message from a sensor now."),
    "logs": Listed("logs", "Show the logs of nodes, in order of time."),
    "deploy": Listed(
        "deploy",
        "Install the nodes with `place: boards` on Raspberry Pis, start the others here, and connect all of them.",
    ),
    "collect": Listed(
        "deploy",
        "Copy captures and logs from the boards into the run's folder. Files that are complete there are skipped.",
    ),
    "inventory": Listed(
        "deploy",
        "Write an inventory template for the nodes with `place: boards` of a topology.",
    ),
    "replay": Listed(
        "replay",
        "Replay the publications and faults of a run from its folder, or the messages of captures, and compare.",
    ),
    "watch": Listed(
        "watch",
        "Show delay and loss by level during a run, from its captures and logs.",
    ),
    "events": Listed(
        "events",
        "Show the events of a run in order of time: publications, receptions, losses, faults, link changes,\n"
        "connections, marks and operations on the lab.",
    ),
    "validate": Listed(
        "validate",
        "Check topology files and scenarios. Report all errors and likely mistakes with line and column.",
    ),
    "plan": Listed(
        "plan",
        "Show the steps that `up` would take now, and the scenario's timeline. The command changes nothing.",
    ),
    "schema": Listed("schema", "Print the JSON Schema of topology files (for editors)."),
    "graph": Listed(
        "graph",
        "Draw a topology, or an overlay of brokers with the path of one publication, formed in virtual time.",
    ),
    "profiles": Listed(
        "profiles",
        "List the link profiles, built in or of other packages, and the sources of their numbers.",
    ),
    "plugins": Listed(
        "plugins",
        "List delivery methods, overlay methods and link profiles that other installed packages bring.",
    ),
    "doctor": Listed(
        "doctor",
        "Check which tools and rights this machine has, and show what is not possible without the missing ones.",
    ),
    "link": Listed(
        "link",
        "Show and change the links of a lab that is up. The run's manifest records each change.",
    ),
    "node": Listed(
        "link",
        "Crash, stop and start nodes of a lab, on this machine or on boards. The run's manifest records each change.",
    ),
    "image": Listed(
        "image",
        "Build, list and remove container images. `up` builds missing images itself.",
    ),
}
