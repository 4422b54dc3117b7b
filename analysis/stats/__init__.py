"""Runs judged and compared: expectations, trials of an experiment, intervals, effects and thresholds."""
