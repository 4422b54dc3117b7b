"""Resolve references between the sections of a file: one module for each part of the resolved topology."""
