"""Figures of papers, from the metrics of runs or from the rows of reproduction cells."""
