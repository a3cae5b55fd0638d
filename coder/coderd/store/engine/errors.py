"""What the database refuses, under a name the services may use: they catch it, only the store speaks SQL."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError

__all__ = ["IntegrityError"]
