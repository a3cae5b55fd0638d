"""Refusals of applications as values: shared by the server, its proxies and their pages.

Decided in `services/apps/app_access.py`; the texts are in `app_pages.py`. `to_fields` and `from_fields` carry a refusal
from the server to a workspace proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

Reason = Literal[
    "sign_in",
    "not_found",
    "path_apps_off",
    "port_by_path",
    "reserved_port",
    "not_web",
    "workspace_offline",
    "workspace_dormant",
    "agent_offline",
    "primary_away",
]
"""`primary_away` is a proxy's own: its server was unreachable."""

_SPOT = ("owner", "workspace", "agent", "external_url")


@dataclass(frozen=True, slots=True)
class AppLocation:
    """Location of an application, as far as its visitor may know."""

    owner: str
    workspace: str
    agent: str = ""
    external_url: str = ""
    """Target of an application that is an external link."""

    @property
    def workspace_path(self) -> str:
        """Return the path of the workspace's page on the dashboard."""
        return f"/@{self.owner}/{self.workspace}"


class AppRefusedError(Exception):
    """Reason why an application does not open; `app_pages.py` has the texts."""

    def __init__(self, reason: Reason, detail: str = "", spot: AppLocation | None = None) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.detail = detail
        self.spot = spot


def to_fields(refused: AppRefusedError) -> list[tuple[str, str]]:
    """Return a refusal as names and values."""
    result = [("reason", str(refused.reason)), ("detail", refused.detail)]
    if refused.spot is not None:
        result += [(name, getattr(refused.spot, name)) for name in _SPOT]
    return [(name, value) for name, value in result if value]


def from_fields(fields: Mapping[str, str]) -> AppRefusedError | None:
    """Parse the refusal of `to_fields`; None for an unknown one."""
    reason = next((known for known in get_args(Reason) if known == fields.get("reason")), None)
    if reason is None:
        return None
    spot = AppLocation(**{name: fields.get(name, "") for name in _SPOT}) if fields.get("workspace") else None
    return AppRefusedError(reason, fields.get("detail", ""), spot)


def app_port(url: str) -> int:
    """Return the port an application listens on; 0 for an address without a port we could dial."""
    try:
        parts = urlsplit(url)
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return 0
