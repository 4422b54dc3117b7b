"""Banno 2013: path lengths and fairness of load of SG-TBPS and Scribe, beside what the paper says."""
