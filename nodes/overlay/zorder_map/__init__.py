"""A publish/subscribe map over Z-order keys: each broker serves an area of a space and matches points with boxes there.

`curve` maps a point to one number and splits a box into intervals of such numbers. `registry` finds the boxes that
contain a point.
"""
