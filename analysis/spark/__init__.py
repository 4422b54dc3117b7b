"""Spark itself: its session, its Java, signals, and our code on a cluster."""
