"""A Publish/Subscribe map over Z-order keys: who looks after which part of a space, and whose box holds a point.

`curve` makes one number of a point and splits a box into intervals of such numbers, `registry` finds the boxes that
hold a point.
"""
