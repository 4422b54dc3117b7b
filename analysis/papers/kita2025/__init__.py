"""Kita 2025: paths, messages and delays of priorities in topic pub/sub on Skip Graphs, compared with the thesis."""
