"""Papers that the testbed reproduces: what is run for them, and what they say. Pure; `testbed reproduce` runs it."""
