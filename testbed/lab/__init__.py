"""A lab from `up` to `down`: one module for each command. All of them report their progress through events.

Nothing is imported here: each command loads only the modules it needs, and starts faster.
"""
