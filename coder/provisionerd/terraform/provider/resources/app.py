"""coder_app: an application that an agent serves and the dashboard lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coder.domain.foundation.go_url import go_quote
from coder.provisionerd.terraform.provider.checks import at_most_bytes, is_url
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, warning
from coder.provisionerd.terraform.provider.kinds import Body, ProviderContext, ResourceKind
from coder.provisionerd.terraform.provider.readers import checked_text
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, Attribute, Block, Schema
from coder.provisionerd.terraform.provider.values import Value

SLUG_PATTERN = "^[a-z0-9](-?[a-z0-9])*$"
_SLUG = re.compile(r"[a-z0-9](-?[a-z0-9])*")


def _check_slug(value: Value, _key: str) -> Iterator[str]:
    slug = checked_text(value)
    if not _SLUG.fullmatch(slug):
        yield (
            f'invalid "coder_app" slug, must be a valid hostname ("{SLUG_PATTERN}", cannot contain two consecutive '
            f"hyphens or start/end with a hyphen): {go_quote(slug)}"
        )


def _check_share(value: Value, _key: str) -> Iterator[str]:
    if value not in {"owner", "authenticated", "public"}:
        yield f'invalid app share {go_quote(checked_text(value))}, must be one of "owner", "authenticated", "public"'


def _check_open_in(value: Value, _key: str) -> Iterator[str]:
    if value not in {"tab", "slim-window"}:
        yield f'invalid "coder_app" open_in value, must be one of "tab", "slim-window": {go_quote(checked_text(value))}'


_SCHEMA = Schema(
    {
        "id": Attribute(STRING, "optional+computed"),
        "agent_id": Attribute(STRING, "required", description="Agent that serves the app."),
        "slug": Attribute(STRING, "required", check=_check_slug, description="Name in URLs, unique in the template."),
        "command": Attribute(
            STRING, conflicts=("url", "subdomain"), description="Command run in a terminal instead of a URL."
        ),
        "url": Attribute(STRING, conflicts=("command",), description="Address as seen from the workspace."),
        "subdomain": Attribute(BOOL, description="Serve under its own host name instead of a path."),
        "external": Attribute(
            BOOL,
            default=False,
            conflicts=("healthcheck", "command", "subdomain", "share"),
            description="A link the browser opens itself.",
        ),
        "share": Attribute(
            STRING, default="owner", check=_check_share, description="Sharing level: users who may open the app."
        ),
        "icon": Attribute(STRING, check=is_url, description="URL of an image."),
        "display_name": Attribute(STRING, check=at_most_bytes(64, "display name"), description="Name that users see."),
        "group": Attribute(STRING, check=at_most_bytes(64, "group name"), description="Apps listed together."),
        "tooltip": Attribute(STRING, check=at_most_bytes(2048, "tooltip"), description="Markdown shown on hover."),
        "order": Attribute(NUMBER, description="Position among the apps; lower comes first."),
        "hidden": Attribute(
            BOOL, default=False, description="Whether to hide the app from the dashboard; it stays reachable."
        ),
        "open_in": Attribute(
            STRING, default="slim-window", check=_check_open_in, description="Window or tab that opens the app."
        ),
        "healthcheck": Block(
            "set",
            {
                "url": Attribute(STRING, "required", description="URL that must return a status below 500."),
                "interval": Attribute(NUMBER, "required", description="Seconds between two checks."),
                "threshold": Attribute(NUMBER, "required", description="Failures in a row that mean unhealthy."),
            },
            max_items=1,
            conflicts=("command",),
            description="Health check that the agent runs.",
        ),
    },
    description="An app in a workspace.",
)


def _create(_context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    if state["hidden"]:
        for name in ("display_name", "icon", "order"):
            if state[name]:
                yield warning(f"`{name}` set when app is hidden")


app = ResourceKind(_SCHEMA, create=_create)
