"""Delay and loss by level while a run is in progress."""
