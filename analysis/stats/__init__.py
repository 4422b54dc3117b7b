"""Judges and compares runs: expectations, trials of an experiment, intervals, effects and thresholds."""
