"""Where things lie, for tests that read files: they must not count folders up from where they happen to stand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""
DATA = ROOT / "tests" / "data"
"""Recorded facts."""
