"""The token of a workspace proxy, as far as both sides must agree: its header, and how it is refused."""

from __future__ import annotations

# ruff: noqa: S105 - names and sentences

TOKEN_HEADER = "Coder-External-Proxy-Token"
TOKEN_MISSING = "Missing required external proxy token"
TOKEN_REFUSED = "Invalid external proxy token"
