"""A Publish/Subscribe map over Z-order keys: who looks after which part of a space, and whose box holds a point.

`curve` makes one number of a point, `boxes` splits a box into intervals of such
numbers (`parts` says how), `matching` finds the boxes that hold a point.
"""
