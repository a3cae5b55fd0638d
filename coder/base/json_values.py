"""Type of decoded JSON, for documents whose form this program does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""Any JSON value. Also for values to encode: tuples become arrays."""
