"""Banno 2013: path lengths and load fairness of SG-TBPS and Scribe, compared with the paper."""
