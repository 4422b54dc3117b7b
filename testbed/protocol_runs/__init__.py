"""Runs of the nodes' own protocol in virtual time, in overlays too large to be formed by messages.

Most nodes of the overlay only stand there: they begin where a converged graph has them, and exist when a message
reaches them. Those that an experiment is about come, speak and go as real ones do.
"""

from testbed.protocol_runs.plan import Stopping
from testbed.protocol_runs.stopping import measure_stopping

__all__ = ["Stopping", "measure_stopping"]
