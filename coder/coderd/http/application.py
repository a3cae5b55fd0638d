"""The HTTP application: which blueprints it has, what is the same for every answer.

A new noun is one module with `blueprint` and one line in `BLUEPRINTS`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quart import Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import PathConverter, WebsocketMismatch

from coder.api import codec
from coder.coderd.http import audited
from coder.coderd.http.auth import CsrfMismatch, context, count_public_request, credentials
from coder.coderd.http.errors import envelope_of
from coder.coderd.http.frame import Frame
from coder.coderd.http.hypercorn_fixes import Application, new_application
from coder.coderd.http.traced import Traced
from coder.coderd.services.authentication import authenticate
from coder.coderd.services.errors import Refusal
from coder.coderd.services.tracing import Tracing

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

BLUEPRINTS: tuple[str, ...] = (
    "root",
    "carriers",
    "sessions",
    "users",
    "keys",
    "organizations",
    "organization_settings",
    "groups",
    "user_secrets",
    "user_skills",
    "files",
    "roles",
    "settings",
    "deployment",
    "applications",
    "workspace_proxies",
    "proxy_calls",
    "inbox",
    "notifications",
    "web_push",
    "audit",
    "insights",
    "debug",
    "prebuilds",
    "templates",
    "template_versions",
    "provisioners",
    "workspaces",
    "workspace_inventory",
    "builds",
    "agents",
    "tasks",
    "terminals",
    "init_script",
    "binaries",
    "experiments",
    "not_offered",
    "wireguard_clients",
    "oauth2",
    "provider_logins",
    "external_auth",
    "scim",
    "swagger",
    # last: takes what nobody else wants
    "site",
)


class PagePath(PathConverter):
    """Any path that is not the API's: there an unknown route is 404 and a wrong method 405."""

    regex = r"(?!api/v2(?:/|$)|api/experimental/).*?"


def build_application(ctx: Context, links: Sequence[tuple[str, Any]] = ()) -> Frame | Traced:
    """The ASGI application with all blueprints. `links` (pattern, handler) are only described, not served."""
    framed = Frame(make_application(ctx, links), ctx)
    return Traced(framed, ctx.parts[Tracing]) if Tracing in ctx.parts else framed


def make_application(ctx: Context, links: Sequence[tuple[str, Any]] = ()) -> Application:
    """The same without the frame around it."""
    app = new_application("coderd")
    app.config["CODER_CONTEXT"] = ctx
    app.config["CODER_LINKS"] = links
    app.url_map.converters["page"] = PagePath
    for name in BLUEPRINTS:
        app.register_blueprint(import_module(f"coder.coderd.http.{name}").blueprint)
    audited.install(app)
    if not ctx.config.dangerous_disable_rate_limits:
        app.before_request(count_public_request)
    _register_errors(app)
    _only_named_methods(app)
    return app


def _only_named_methods(app: Application) -> None:
    """API routes answer HEAD and OPTIONS with 405, as upstream's router does; Quart would invent answers."""
    paths = {_shape(rule.rule) for rule in app.url_map.iter_rules()}
    parents = {path[: path.rindex("/")] for path in paths}
    for rule in app.url_map.iter_rules():
        if not rule.rule.startswith("/api/"):
            continue
        # A slash at the end: upstream's router takes it where a path goes on, and nowhere else.
        rule.strict_slashes = not rule.rule.endswith("/") and _shape(rule.rule) not in parents
        if rule.methods is not None and not rule.websocket:
            rule.methods -= {"HEAD", "OPTIONS"}


def _shape(path: str) -> str:
    return re.sub(r"<[^>]*>", "{}", path)


def _register_errors(app: Application) -> None:
    app.register_error_handler(Refusal, _on_error)
    app.register_error_handler(HTTPException, _on_http_exception)
    app.register_error_handler(Exception, _on_error)


async def _on_error(error: Exception) -> Response:
    if isinstance(error, CsrfMismatch):
        return Response(error.message + "\n", 400, content_type="text/plain; charset=utf-8")
    status, body, headers = envelope_of(error)
    response = Response(body, status, content_type="application/json; charset=utf-8")
    for name, value in headers:
        response.headers.add(name, value)
    return response


async def _on_http_exception(error: HTTPException) -> Any:
    if isinstance(error, WebsocketMismatch):
        return await _upgrade_required()
    status = error.code or 500
    if status == 404:
        if _SIGNED_IN & set(request.path.split("/")[3:4]):
            refused = await _refuse_strangers()
            if refused is not None:
                return refused
        return _json({"message": "Route not found."}, 404)
    if status == 405:
        # Upstream's router: an empty 405 with the methods it has.
        methods = getattr(error, "valid_methods", None) or ()
        return Response(b"", 405, {"Allow": ", ".join(sorted(methods))} if methods else None)
    if 300 <= status < 400:
        return error.get_response()
    return _json({"message": error.description or error.name}, status)


_SIGNED_IN = frozenset(
    {"audit", "connectionlog", "debug", "deployment", "experiments", "external-auth", "files", "groups", "insights",
     "licenses", "notifications", "organizations", "prebuilds", "replicas", "settings", "tailnet", "tasks",
     "templatebuilder", "templates", "templateversions", "workspacebuilds", "workspaces"}
)  # fmt: skip
"""Parts of the API for people who signed in: what it has not is told to them alone (recorded: 401 first)."""
_PUBLIC_STREAMS = frozenset({"/api/v2/derp-map"})


async def _refuse_strangers() -> Response | None:
    try:
        await authenticate(context(), credentials())
    except Refusal as refusal:
        return await _on_error(refusal)
    return None


async def _upgrade_required() -> Response:
    """A plain GET on a WebSocket's path: who may not come in hears that first."""
    if request.path not in _PUBLIC_STREAMS:
        refused = await _refuse_strangers()
        if refused is not None:
            return refused
    connection = request.headers.get("Connection", "")
    text = f'WebSocket protocol violation: Connection header "{connection}" does not contain Upgrade'
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    return Response(text, 426, headers, content_type="text/plain; charset=utf-8")


def _json(value: dict[str, Any], status: int) -> Response:
    return Response(codec.encode(value), status, content_type="application/json; charset=utf-8")
