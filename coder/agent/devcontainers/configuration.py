"""What a `devcontainer.json` says for us: its `customizations.coder`, the user, the folder inside.

Read from what `devcontainer read-configuration` prints, which has understood comments, variables and features.
Whoever wrote the repository wrote it, so nothing is believed but its shape.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coder.agent.devcontainers.commands import CommandError, read_json_untrusted, short_text
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
"""Buttons of an agent, and which of them a dev container's has when nothing is said."""
MAX_APPS = 50
"""Ours: applications of one dev container."""
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
"""Ours: characters of a name that a folder gives, and of what goes before or behind it where that is taken. With a
hyphen between them a name may have no more."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Of one dev container; the default is that of one that says nothing."""

    name: str = ""
    ignore: bool = False
    auto_start: bool = False
    remote_user: str = ""
    workspace_folder: str = ""
    "Inside the container."
    apps: tuple[agent_pb2.CreateSubAgentRequest.App, ...] = ()
    display_apps: tuple[str, ...] = tuple(name for name, shown in DISPLAY_APPS.items() if shown)


def read_configuration_untrusted(answer: bytes) -> Configuration:
    """Of what `devcontainer read-configuration --include-merged-configuration` printed. Raises CommandError."""
    try:
        said = read_json_untrusted(answer)
        plain = _mapping(said.get("configuration"))
        merged = _mapping(said.get("mergedConfiguration")) or plain
        inside = short_text(_mapping(said.get("workspace")), "workspaceFolder")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CommandError("What the devcontainer command says of the configuration could not be read.") from error
    layers = _mapping(merged.get("customizations")).get("coder") or []
    wanted: dict[str, Any] = {}
    apps: dict[str, Any] = {}
    shown = dict(DISPLAY_APPS)
    # Merged configurations have a layer for each feature and for the description itself, which comes last.
    for layer in map(_mapping, layers if isinstance(layers, list) else [layers]):
        wanted |= layer
        apps |= {short_text(app, "slug"): app for app in map(_mapping, _list(layer.get("apps")))}
        buttons = _mapping(layer.get("displayApps"))
        shown |= {name: value for name, value in buttons.items() if name in shown and isinstance(value, bool)}
    return Configuration(
        name=short_text(wanted, "name"),
        ignore=wanted.get("ignore") is True,
        auto_start=wanted.get("autoStart") is True,
        remote_user=short_text(merged, "remoteUser") or short_text(merged, "containerUser"),
        workspace_folder=inside,
        apps=tuple(_app(app) for app in list(apps.values())[:MAX_APPS]),
        display_apps=tuple(name for name, wished in shown.items() if wished),
    )


def _app(said: Mapping[str, Any]) -> agent_pb2.CreateSubAgentRequest.App:
    """The server judges it; what has another type than it should is as if it were not there."""
    app = _Request.App(slug=short_text(said, "slug"))
    for key, field in _TEXTS.items():
        if text := short_text(said, key):
            setattr(app, field, text)
    for flag in _FLAGS:
        if isinstance(said.get(flag), bool):
            setattr(app, flag, said[flag])
    if isinstance(order := said.get("order"), int) and order in _INT32:
        app.order = order
    if (open_in := _OPEN_IN.get(short_text(said, "openIn"))) is not None:
        app.open_in = open_in
    if (share := _SHARE.get(short_text(said, "share"))) is not None:
        app.share = share
    if check := _mapping(said.get("healthCheck")):
        app.healthcheck.url = short_text(check, "url")
        for key in ("interval", "threshold"):
            if isinstance(number := check.get(key), int) and number in _INT32:
                setattr(app.healthcheck, key, number)
    return app


def agent_name(folder: str) -> str:
    """A name for the agent of a dev container, from the last part of its folder's path."""
    plain = re.sub(r"[^a-z0-9]+", "-", folder.rstrip("/").rpartition("/")[2].lower()).strip("-")
    return plain[:_STEM].strip("-") or "devcontainer"


def names_to_try(wanted: str, folder: str, own: str) -> list[str]:
    """Names for a sub-agent, the best first: those of a workspace's agents are different, and `own` is taken.

    Each is one the server takes; of what a description wants and no agent can be called, what can is used. The last is
    no other folder's.
    """
    base = (wanted if not explain_name(wanted) else agent_name(wanted)) if wanted else agent_name(folder)
    stem, above = base[:_STEM].strip("-"), agent_name(folder.rstrip("/").rpartition("/")[0])[:_ABOVE].strip("-")
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:_MARK]
    candidates = [base, f"{above}-{stem}", *(f"{stem}-{number}" for number in range(2, 6)), f"{stem}-{mark}"]
    return [name for name in dict.fromkeys(candidates) if name.lower() != own.lower()]


def _mapping(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []
