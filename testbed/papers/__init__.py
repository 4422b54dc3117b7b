"""Papers that the testbed reproduces: their experiments and published values. Pure; `testbed reproduce` runs it."""
