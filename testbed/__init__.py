"""testbed: find out whether an alert gets through."""

__version__ = "0.1.0"
