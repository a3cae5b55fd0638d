"""Releases of the programs: the keys that sign them, and the check of their signatures."""
