"""Version and intervals of agents' reports, for agents and for their simulation."""

from __future__ import annotations

API_VERSION = "2.10"
"Minor version the agent requires; older servers of the same release line accept it, newer ones too."
BANNER_INTERVAL = 120.0
VITALS_INTERVAL = 30.0
"""Seconds."""
