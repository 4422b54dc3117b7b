"""Kita 2025: paths, messages and delays of priorities in topic pub/sub on Skip Graphs, beside what the thesis says."""
