"""The token of a workspace proxy: its header and its refusal, on which both sides must agree."""

from __future__ import annotations

# ruff: noqa: S105 - names and sentences

TOKEN_HEADER = "Coder-External-Proxy-Token"
TOKEN_MISSING = "Missing required external proxy token"
TOKEN_REFUSED = "Invalid external proxy token"
