"""The other files of a run folder: manifest, logs, clocks, machine; and the results of an earlier analysis."""
