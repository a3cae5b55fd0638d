"""Paths that programs request, where the dashboard has no page.

A program takes a page with status 200 for success. At these paths an unknown route is 404 and an unknown method 405,
both as JSON.
"""

from __future__ import annotations

import re

MACHINE_PREFIXES = (
    ".well-known",
    "api",
    "bin",
    "debug",
    "derp",
    "healthz",
    "healthz-report",
    "latency-check",
    "livez",
    "metrics",
    "oauth2",
    "readyz",
    "scim",
    "swagger",
)
"""First segments of such paths. `debug` and `metrics` belong to other listeners: a scrape of this one must fail."""
NESTED = ("api/v2", "scim/v2")
"""Segments that mark such a path anywhere: a client's base URL may end with a page's path."""
_FIRST = "|".join(re.escape(prefix) for prefix in MACHINE_PREFIXES)
PAGE_PATTERN = rf"(?!(?:{_FIRST})(?:/|$)|.*/(?:{'|'.join(NESTED)})/).*?"
"""Regular expression of a page's path, without its first slash."""
EMPTY_405 = ("/api/v2", "/derp")
"""Beginnings of paths whose 405 has no body, as upstream's router sends it."""
