"""Sweeps: one topology file with all combinations of some values, each several times with other seeds."""
