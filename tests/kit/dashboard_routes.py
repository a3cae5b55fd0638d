"""The dashboard's own table of routes, read from its source, and which route an address belongs to."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.kit.loopback import ROOT

DASHBOARD = ROOT / "coder/dashboard"
_READER = Path(__file__).with_suffix(".mjs")
_STATIC, _DYNAMIC = 10, 3  # as the router ranks: a word before a parameter


@dataclass(frozen=True)
class Route:
    pattern: str
    redirect: str | None
    "Where it only leads on to."

    @property
    def parts(self) -> list[str]:
        return [part for part in self.pattern.split("/") if part]

    def matches(self, path: str) -> bool:
        there = [part for part in path.split("/") if part]
        if self.pattern == "*" or len(there) != len(self.parts):
            return False
        return all(own.startswith(":") or own == part for own, part in zip(self.parts, there, strict=True))

    @property
    def rank(self) -> int:
        return sum(_DYNAMIC if part.startswith(":") else _STATIC for part in self.parts)


def routes() -> tuple[Route, ...]:
    """Every route, as `src/app/routes` has them."""
    command = ["node", str(_READER), str(DASHBOARD)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return tuple(Route(**found) for found in json.loads(done.stdout))


def route_of(table: tuple[Route, ...], address: str) -> Route | None:
    """None: no page of the dashboard (a file, the API, an app of a workspace)."""
    path = urlsplit(address).path
    found = [route for route in table if route.matches(path)]
    return max(found, key=lambda route: route.rank, default=None)


def shape(address: str) -> str:
    """An address without what differs from one thing to the next: for links that are no pages."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "…", urlsplit(address).path)
