"""Installed peers: the endpoint's code between a peer's paths and its tunnel."""
