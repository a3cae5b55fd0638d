"""No answer grows without end as time passes: every route that answers a list names what bounds it.

A new list route fails here until it has a row. Bounds:

- `PAGED`: the caller asks for pages (`limit`), the newest first.
- `WINDOW`: only a span of time, or the newest so many; the constant is named.
- `QUOTA`: a limit of objects or bytes per owner; the constant is named.
- `KEPT`: rows older than a retention are deleted (`services/site/retention.py`, or the constant named).
- `FIXED`: part of one template version, build or release, which does not change.
- `SETUP`: objects that people or administrators create one by one; time alone adds none.

Streams (WebSocket, server-sent events) have rows of their own: a stream lasts, so what bounds each message counts, and
what is kept for a client that reads slowly. `ONE`: a message tells of one object.
"""

from __future__ import annotations

import collections.abc
import importlib
import types
import typing
from typing import Any

import msgspec

from coder.coderd.http.server.declarations import EVENTS, route_of
from coder.coderd.services.foundation.object_limits import LIMITS
from coder.coderd.services.site import retention
from tests.kit.api.api_description import application

PAGED, FIXED, SETUP, ONE = "paged", "fixed", "setup", "one"
_ORGANIZATION, _WORKSPACE, _AGENT = "organizations/<organization>", "workspaces/<id:workspace>", "<id:agent>"
_VERSION, _BUILD = "templateversions/<id:version>", "workspacebuilds/<id:build>"
_AGENT_LOGS = "quota coder.domain.agents.agents:MAX_LOGS_LENGTH"
_JOB_LOGS = "quota coder.domain.provisioning.jobs:MAX_LOG_BYTES"
BOUNDS = {
    "auth/scopes": FIXED,
    "audit": PAGED,
    "connectionlog": PAGED,
    "debug/derp/traffic": SETUP,
    "debug/health/settings": FIXED,
    "experiments": FIXED,
    "experiments/available": FIXED,
    "external-auth": SETUP,
    "groups": SETUP,
    "groups/<id:group>/members": PAGED,
    "insights/daus": "window coder.coderd.services.templates.insights:DAYS",
    "insights/templates": "window start_time",
    "licenses": FIXED,
    "notifications/delivery": FIXED,
    "notifications/dispatch-methods": FIXED,
    "notifications/inbox": "window coder.coderd.store.notifications.notifications:MAX_INBOX_MESSAGES",
    "notifications/templates/custom": FIXED,
    "notifications/templates/system": FIXED,
    "oauth2-provider/apps": SETUP,
    "oauth2-provider/apps/<id:app>/secrets": SETUP,
    "organizations": SETUP,
    f"{_ORGANIZATION}/groups": SETUP,
    f"{_ORGANIZATION}/groups/<name>/members": PAGED,
    f"{_ORGANIZATION}/members": SETUP,
    f"{_ORGANIZATION}/members/<user>/workspaces/available-users": PAGED,
    f"{_ORGANIZATION}/members/roles": SETUP,
    f"{_ORGANIZATION}/paginated-members": PAGED,
    f"{_ORGANIZATION}/provisionerdaemons": PAGED,
    f"{_ORGANIZATION}/provisionerdaemons/health": "kept coder.domain.provisioning.provisioners:FORGET_AFTER",
    f"{_ORGANIZATION}/provisionerjobs": PAGED,
    f"{_ORGANIZATION}/provisionerjobs/<id:job>/why": FIXED,
    f"{_ORGANIZATION}/provisionerkeys": SETUP,
    f"{_ORGANIZATION}/provisionerkeys/daemons": "kept coder.domain.provisioning.provisioners:FORGET_AFTER",
    f"{_ORGANIZATION}/settings/idpsync/available-fields": SETUP,
    f"{_ORGANIZATION}/settings/idpsync/field-values": SETUP,
    f"{_ORGANIZATION}/templates": SETUP,
    f"{_ORGANIZATION}/templates/<name>/versions/<version>/previous": FIXED,
    f"{_ORGANIZATION}/templates/examples": FIXED,
    "programs": FIXED,
    "regions": SETUP,
    "replicas": "kept coder.coderd.services.network.replicas:DEAD",
    "settings/idpsync/available-fields": SETUP,
    "settings/idpsync/field-values": SETUP,
    "tasks": PAGED,
    "templatebuilder/bases": FIXED,
    "templatebuilder/modules": FIXED,
    "templates": SETUP,
    "templates/<id:template>/acl": SETUP,
    "templates/<id:template>/acl/available": PAGED,
    "templates/<id:template>/build-report": "window coder.coderd.services.templates.build_report:_MOST_BUILDS",
    "templates/<id:template>/daus": "window coder.coderd.services.templates.insights:DAYS",
    "templates/<id:template>/rollouts": "window coder.coderd.services.templates.rollouts:_SHOWN",
    "templates/<id:template>/versions": PAGED,
    "templates/examples": FIXED,
    f"{_VERSION}/dry-run/<id:job>/logs": _JOB_LOGS,
    f"{_VERSION}/dry-run/<id:job>/resources": FIXED,
    f"{_VERSION}/external-auth": FIXED,
    f"{_VERSION}/logs": _JOB_LOGS,
    f"{_VERSION}/parameters": FIXED,
    f"{_VERSION}/presets": FIXED,
    f"{_VERSION}/resources": FIXED,
    f"{_VERSION}/rich-parameters": FIXED,
    f"{_VERSION}/schema": FIXED,
    f"{_VERSION}/variables": FIXED,
    "users": PAGED,
    "users/<user>/autofill-parameters": FIXED,
    "users/<user>/keys/tokens": "quota tokens",
    "users/<user>/notifications/preferences": FIXED,
    "users/<user>/organizations": SETUP,
    "users/<user>/roles": SETUP,
    "users/<user>/secrets": "quota secrets",
    "users/<user>/skills": "quota skills",
    "users/<user>/sessions": "window coder.coderd.store.access.keys:MAX_LISTED_SESSIONS",
    "users/<user>/wireguard-clients": "quota coder.coderd.services.wireguard.new_wireguard_clients:MAX_CLIENTS",
    "users/roles": FIXED,
    "wireguard": SETUP,
    f"workspaceagents/{_AGENT}/disconnects": "window coder.coderd.services.agents.vitals:MAX_EVENTS",
    f"workspaceagents/{_AGENT}/listening-ports": SETUP,
    f"workspaceagents/{_AGENT}/logs": _AGENT_LOGS,
    f"workspaceagents/{_AGENT}/startup-logs": _AGENT_LOGS,
    f"{_BUILD}/logs": _JOB_LOGS,
    f"{_BUILD}/parameters": FIXED,
    f"{_BUILD}/resources": FIXED,
    f"{_BUILD}/timings": FIXED,  # the first run of each script: tests of build_timings
    "workspaceproxies": SETUP,
    "workspaceproxies/me/crypto-keys": "kept coder.coderd.services.foundation.signing_keys:OVERLAP",
    "workspaces": PAGED,
    "workspaces/offered-versions": "window ids",
    f"{_WORKSPACE}/acl": SETUP,
    f"{_WORKSPACE}/builds": PAGED,
    f"{_WORKSPACE}/inventory": FIXED,
    f"{_WORKSPACE}/port-share": SETUP,
    f"{_WORKSPACE}/timings": FIXED,
    "tasks/<user>/<task>/logs": "quota coder.coderd.services.tasks.task_conversation:MAX_SNAPSHOT",
}
"""Path below /api/v2 or /api/experimental -> what bounds its answer."""
_CHANGES = "window coder.coderd.services.workspaces.change_feed:_MAX_PENDING"
_JOB_PAGES = "window coder.coderd.services.provisioning.job_logs:_PAGE"
_AGENT_PAGES = "window coder.coderd.services.workspaces.agent_streams:_LOG_PAGE"
STREAMS = {
    "debug/ws": (ONE, ONE),
    "derp-map": (SETUP, ONE),
    "notifications/inbox/watch": (ONE, "window coder.coderd.store.engine.listening:MAX_WAITING"),
    f"{_VERSION}/dry-run/<id:job>/logs": (_JOB_LOGS, _JOB_PAGES),
    f"{_VERSION}/dynamic-parameters": (FIXED, ONE),
    f"{_VERSION}/logs": (_JOB_LOGS, _JOB_PAGES),
    "watch-all-workspacebuilds": (ONE, "window coder.coderd.services.workspaces.builds.build_updates:BuildUpdates"),
    f"workspaceagents/{_AGENT}/containers/watch": (
        "window coder.coderd.services.agents.agent_containers:_MAX_MESSAGE",
        ONE,
    ),
    f"workspaceagents/{_AGENT}/logs": (_AGENT_LOGS, _AGENT_PAGES),
    f"workspaceagents/{_AGENT}/pty": (ONE, ONE),
    f"workspaceagents/{_AGENT}/startup-logs": (_AGENT_LOGS, _AGENT_PAGES),
    f"workspaceagents/{_AGENT}/watch-metadata": (FIXED, _CHANGES),
    f"workspaceagents/{_AGENT}/watch-metadata-ws": (FIXED, _CHANGES),
    "workspaceagents/me/reinit": (ONE, ONE),
    f"{_BUILD}/logs": (_JOB_LOGS, _JOB_PAGES),
    f"{_WORKSPACE}/agent-connection-watch": (ONE, _CHANGES),
    f"{_WORKSPACE}/watch": (ONE, _CHANGES),
    f"{_WORKSPACE}/watch-ws": (ONE, _CHANGES),
}
"""Path of a stream -> what bounds a message (or all of them together), and what waits for a slow client."""
OTHERS = {"users/first", "ai/providers", "chats", "appearance", "entitlements", ""}
"""Single documents with a list in them, and routes of features that are not served."""


def _has_list(hint: Any, depth: int = 0) -> bool:
    origin = typing.get_origin(hint)
    if origin in {list, tuple, collections.abc.Sequence}:
        return True
    if origin in {typing.Union, types.UnionType}:
        return any(_has_list(part, depth) for part in typing.get_args(hint))
    if depth == 0 and isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return any(_has_list(part, 1) for part in typing.get_type_hints(hint).values())
    return False


def _list_routes() -> dict[str, set[str]]:
    """Return path -> query parameters of the API's routes that answer more than one object."""
    found: dict[str, set[str]] = {}
    for rule in application().url_map.iter_rules():
        declared = route_of(application().view_functions[rule.endpoint])
        path = rule.rule.removeprefix("/api/v2").removeprefix("/api/experimental").strip("/")
        if declared is None or "GET" not in (rule.methods or ()) or not rule.rule.startswith("/api/"):
            continue
        answers = declared.answers if isinstance(declared.answers, tuple) else (declared.answers,)
        is_list = any(typing.get_origin(answer) is list for answer in answers)
        if any(map(_has_list, answers)) and (is_list or not path.endswith(">")) and path not in OTHERS:
            found[path] = found.get(path, set()) | set(declared.query)
    return found


def test_every_list_route_has_a_bound() -> None:
    assert _list_routes().keys() == BOUNDS.keys()


def test_every_bound_is_there() -> None:
    routes = _list_routes()
    for path, bound in BOUNDS.items():
        kind, _, name = bound.partition(" ")
        if kind == PAGED:
            assert "limit" in routes[path], path
        elif ":" in name:
            module, _, attribute = name.partition(":")
            assert getattr(importlib.import_module(module), attribute), path
        elif kind == "window":
            assert name in routes[path], path
        elif kind == "quota":
            assert LIMITS[name].max_count, path
        else:
            assert kind in {FIXED, SETUP} and not name, path


def _stream_routes() -> set[str]:
    found = set()
    for rule in application().url_map.iter_rules():
        declared = route_of(application().view_functions[rule.endpoint])
        if declared is not None and (declared.websocket or declared.answers is EVENTS):
            found.add(rule.rule.removeprefix("/api/v2").removeprefix("/api/experimental").strip("/"))
    return found


def test_every_stream_has_a_bound() -> None:
    assert _stream_routes() == STREAMS.keys()
    for path, bounds in STREAMS.items():
        for bound in bounds:
            kind, _, name = bound.partition(" ")
            assert kind in {ONE, FIXED, SETUP} or name, path
            if name:
                module, _, attribute = name.partition(":")
                assert getattr(importlib.import_module(module), attribute), path


def test_every_retention_is_a_span() -> None:
    spans = [value for name, value in vars(retention).items() if name.startswith("KEEP_")]
    assert spans and all(span.total_seconds() > 0 for span in spans)
