"""Options shared by commands that connect to a workspace."""

from __future__ import annotations
