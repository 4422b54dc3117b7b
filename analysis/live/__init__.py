"""Delay and loss by level while a run goes on."""
