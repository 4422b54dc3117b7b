"""Figures of papers, from the metrics of runs that reproduce them."""
