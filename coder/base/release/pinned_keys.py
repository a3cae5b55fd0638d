"""Public keys that sign releases, pinned in the program."""

from __future__ import annotations

RELEASE_KEYS: tuple[str, ...] = ()
"""Minisign public keys (one line each, as `scripts/release --show-key` prints them). A release is accepted if one of
them signed it: add the next key one release before it signs. Empty: `coder verify` requires `--key`."""
