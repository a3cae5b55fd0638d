"""Tries of an admitted peer of the overlay, and of strangers on UDP and at a relay, against one node.

`place.py` has the simulated deployment, `judge.py` the judge, `conn.py` a TCP peer in any state, `tables/` the kinds.
"""
