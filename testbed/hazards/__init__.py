"""Disasters as models: rain or shaking in, warning levels and publications of sensors out. Pure.

See docs/explanation/hazards.md.
"""
