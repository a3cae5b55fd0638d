"""Parts of a `devcontainer.json` that the agent uses: `customizations.coder`, the user, the folder inside the
container.

Read from the output of `devcontainer read-configuration`, which has resolved comments, variables and features. The
repository's author controls the content, so it is validated as untrusted input.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from coder.agent.devcontainers.commands import CommandError, read_json_untrusted, short_text
from coder.base.json_types import Json, JsonObject
from coder.domain.agents.sub_agents import explain_name
from coder.rpc.proto import agent_pb2

_Request = agent_pb2.CreateSubAgentRequest
DISPLAY_APPS = {
    "vscode": True,
    "vscode_insiders": False,
    "web_terminal": True,
    "ssh_helper": True,
    "port_forwarding_helper": True,
}
"""Buttons of an agent; the value is the default for a dev container."""
MAX_APPS = 50
"""Applications of one dev container (ours)."""
_FLAGS = ("external", "hidden", "subdomain")
_TEXTS = {"command": "command", "displayName": "display_name", "group": "group", "icon": "icon", "url": "url"}
_OPEN_IN = {"slim-window": _Request.App.SLIM_WINDOW, "tab": _Request.App.TAB}
_SHARE = {
    "owner": _Request.App.OWNER,
    "authenticated": _Request.App.AUTHENTICATED,
    "organization": _Request.App.ORGANIZATION,
    "public": _Request.App.PUBLIC,
}
_INT32 = range(-(2**31), 2**31)
_STEM, _ABOVE, _MARK = 48, 15, 8
"""Characters (ours) of a name derived from a folder, and of the prefix or suffix added when that name is taken. Joined
by a hyphen they reach the longest name allowed."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration of one dev container; the default applies when the description is silent."""

    name: str = ""
    ignore: bool = False
    auto_start: bool = False
    remote_user: str = ""
    workspace_folder: str = ""
    "Path inside the container."
    apps: tuple[agent_pb2.CreateSubAgentRequest.App, ...] = ()
    display_apps: tuple[str, ...] = tuple(name for name, buttons_on in DISPLAY_APPS.items() if buttons_on)


def read_configuration_untrusted(answer: bytes) -> Configuration:
    """Parse the output of `devcontainer read-configuration --include-merged-configuration`. Raises CommandError."""
    try:
        document = read_json_untrusted(answer)
        if not isinstance(document, dict):
            raise TypeError("an object is required")
        plain = _mapping(document.get("configuration"))
        merged = _mapping(document.get("mergedConfiguration")) or plain
        inside = short_text(_mapping(document.get("workspace")), "workspaceFolder")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CommandError("The output of the devcontainer command could not be parsed.") from error
    layers = _mapping(merged.get("customizations")).get("coder") or []
    merged_layers: JsonObject = {}
    apps: dict[str, Mapping[str, Json]] = {}
    buttons_on = dict(DISPLAY_APPS)
    # Merged configurations have a layer for each feature, and last a layer for the description itself.
    for layer in map(_mapping, layers if isinstance(layers, list) else [layers]):
        merged_layers |= layer
        apps |= {short_text(app, "slug"): app for app in map(_mapping, _list(layer.get("apps")))}
        buttons = _mapping(layer.get("displayApps"))
        buttons_on |= {name: value for name, value in buttons.items() if name in buttons_on and isinstance(value, bool)}
    return Configuration(
        name=short_text(merged_layers, "name"),
        ignore=merged_layers.get("ignore") is True,
        auto_start=merged_layers.get("autoStart") is True,
        remote_user=short_text(merged, "remoteUser") or short_text(merged, "containerUser"),
        workspace_folder=inside,
        apps=tuple(_app(app) for app in list(apps.values())[:MAX_APPS]),
        display_apps=tuple(name for name, enabled in buttons_on.items() if enabled),
    )


def _app(document: Mapping[str, Json]) -> agent_pb2.CreateSubAgentRequest.App:
    """Return the application's request message. The server validates it; fields of a wrong type are left out."""
    app = _Request.App(slug=short_text(document, "slug"))
    for key, field in _TEXTS.items():
        if text := short_text(document, key):
            setattr(app, field, text)
    for flag in _FLAGS:
        if isinstance(document.get(flag), bool):
            setattr(app, flag, document[flag])
    if isinstance(order := document.get("order"), int) and order in _INT32:
        app.order = order
    if (open_in := _OPEN_IN.get(short_text(document, "openIn"))) is not None:
        app.open_in = open_in
    if (share := _SHARE.get(short_text(document, "share"))) is not None:
        app.share = share
    if check := _mapping(document.get("healthCheck")):
        app.healthcheck.url = short_text(check, "url")
        for key in ("interval", "threshold"):
            if isinstance(number := check.get(key), int) and number in _INT32:
                setattr(app.healthcheck, key, number)
    return app


def agent_name(folder: str) -> str:
    """Return a name for the agent of a dev container, from the last part of its folder's path."""
    plain = re.sub(r"[^a-z0-9]+", "-", folder.rstrip("/").rpartition("/")[2].lower()).strip("-")
    return plain[:_STEM].strip("-") or "devcontainer"


def names_to_try(requested: str, folder: str, own: str) -> list[str]:
    """Return names for a sub-agent in order of preference. Names are unique in a workspace, and `own` is taken.

    The server accepts each of them; characters of `requested` that a name cannot have are replaced. The last name
    belongs to this folder alone.
    """
    base = (requested if not explain_name(requested) else agent_name(requested)) if requested else agent_name(folder)
    stem, above = base[:_STEM].strip("-"), agent_name(folder.rstrip("/").rpartition("/")[0])[:_ABOVE].strip("-")
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:_MARK]
    candidates = [base, f"{above}-{stem}", *(f"{stem}-{number}" for number in range(2, 6)), f"{stem}-{mark}"]
    return [name for name in dict.fromkeys(candidates) if name.lower() != own.lower()]


def _mapping(node: Json) -> JsonObject:
    return node if isinstance(node, dict) else {}


def _list(node: Json) -> list[Json]:
    return node if isinstance(node, list) else []
