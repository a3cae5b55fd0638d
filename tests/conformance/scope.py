"""Operations that count: operations.tsv and routes.tsv without the groups this product leaves out."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

API = Path(__file__).resolve().parents[1] / "data" / "api"
_OUT_TAGS = frozenset({"Chats", "AI Gateway", "AI Providers"})
_OUT_PATHS = re.compile(
    r"/chats|/chat-context|/ai-gateway|/ai/|/ai-provider-keys|/licenses|/premium-funnel"
    r"|/agent-firewall|^/agents/|/mcp"
)
"""Chats, the AI gateway and its models, licences, telemetry, and the chats' tool servers."""


_NOT_RECORDED = frozenset({("GET", "/api/v2/organizations/{organization}/paginated-groups")})
"""Newer than the release of the recordings, which answers 404."""


_STREAMS = ("-ws", "/watch", "/ws", "/pty", "/coordinate", "/serve", "/rpc", "-watch", "/derp", "/dynamic-parameters")


@dataclass(frozen=True, slots=True)
class Operation:
    """One documented route."""

    method: str
    path: str
    public: bool = False
    request: str = ""
    statuses: tuple[int, ...] = ()
    "Documented success statuses; empty when unknown."
    response: str = ""
    "A type of types.schema.json, `[]Type` for lists, empty without a documented type."

    @property
    def upgrades(self) -> bool:
        """Whether the route starts a WebSocket (or a relay's stream)."""
        marks = (
            "-ws",
            "/watch",
            "/ws",
            "/pty",
            "/coordinate",
            "/serve",
            "/rpc",
            "-watch",
            "/derp",
            "/dynamic-parameters",
        )
        return self.method == "GET" and (101 in self.statuses or self.path.endswith(marks))

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def in_scope() -> list[Operation]:
    """Return the operations in scope, sorted by path."""
    operations: dict[tuple[str, str], Operation] = {}
    for row in _rows("operations.tsv"):
        if (row["method"], row["path"]) in _NOT_RECORDED or row["tags"] in _OUT_TAGS or _OUT_PATHS.search(row["path"]):
            continue
        statuses = tuple(int(text) for text in row["success"].split(",") if text)
        response = row["response"].replace("codersdk.", "") if row["strict_schema"] == "y" else ""
        operations[row["method"], row["path"]] = Operation(
            row["method"],
            row["path"],
            not row["security"],
            row["request"].replace("codersdk.", ""),
            statuses,
            response,
        )
    for row in _rows("routes.tsv"):
        key = (row["method"], row["path"])
        wild = row["method"] == "MOUNT" or "*" in row["path"] or row["path"] == "/swagger"
        if wild or key in operations or key in _NOT_RECORDED or _OUT_PATHS.search(row["path"]):
            continue
        operations[key] = Operation(*key)
    return sorted(operations.values(), key=lambda item: (item.path, item.method))


def permission_rows() -> list[dict[str, str]]:
    """Return the matrix: method, path, object_owner, then a status for each caller."""
    with (API / "recorded" / "permissions.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _rows(name: str) -> list[dict[str, str]]:
    with (API / name).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))
