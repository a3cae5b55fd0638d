"""Installed peers: what the endpoint does with one of them, between its paths and its tunnel."""
