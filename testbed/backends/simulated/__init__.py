"""The whole lab in one process and in virtual time: the nodes' own cores on links that are arithmetic.

`loop` and `network` know nothing of topologies: any cores that answer messages with actions can run on them.
"""
