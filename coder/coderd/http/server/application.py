"""The HTTP application: its blueprints, and the parts common to every response."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from quart import Blueprint, Response, has_websocket_context, request, websocket
from werkzeug.exceptions import HTTPException
from werkzeug.routing import PathConverter, UnicodeConverter, WebsocketMismatch

from coder.api.base import codec
from coder.api.base.refusals import Refusal
from coder.appproxy.http.errors import envelope_of
from coder.base.json_types import JsonObject
from coder.coderd.http.server.auth import CsrfMismatch, check_public_change, context, count_public_request, credentials
from coder.coderd.http.server.declarations import route_of
from coder.coderd.http.server.middleware import Middleware
from coder.coderd.http.server.quart_fixes import Application, new_application
from coder.coderd.http.server.streams import needs_upgrade
from coder.coderd.http.server.traced import Traced
from coder.coderd.services.access.authentication import authenticate
from coder.domain.access.machine_paths import EMPTY_405, PAGE_PATTERN
from coder.domain.access.rate_budgets import Budget, budgets_of
from coder.domain.access.signed_in import is_for_signed_in

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context


class Identifier(UnicodeConverter):
    """UUID in a path. The view validates it: a wrong one is 400 and not an unknown route."""


class PagePath(PathConverter):
    """Any path that is not a program's: there an unknown route is 404 and a wrong method 405."""

    regex = PAGE_PATTERN


def build_application(
    ctx: Context, blueprints: Iterable[Blueprint], links: Sequence[Any] = (), prepared: Application | None = None
) -> Middleware | Traced:
    """Return the ASGI application with these blueprints. `links` (of `rpc_endpoints`) are only described, not
    served. `prepared` is an application made for another context with the same settings: it gets this one."""
    application = prepared or make_application(ctx, blueprints, links)
    application.config["CODER_CONTEXT"] = ctx
    framed = Middleware(application, ctx)
    tracing = ctx.services.tracing
    return Traced(framed, tracing) if tracing is not None else framed


def make_application(ctx: Context, blueprints: Iterable[Blueprint], links: Sequence[Any] = ()) -> Application:
    """Return the same without the middleware around it."""
    app = new_application("coderd")
    app.config["CODER_CONTEXT"] = ctx
    app.config["CODER_LINKS"] = links
    app.url_map.converters |= {"page": PagePath, "id": Identifier}
    for blueprint in blueprints:
        app.register_blueprint(blueprint)
    app.config["CODER_BUDGETS"] = {
        (rule.rule, rule.endpoint): budgets_of(rule.rule, _budgets_of_view(app.view_functions[rule.endpoint]))
        for rule in app.url_map.iter_rules()
    }
    app.before_request(check_public_change)
    if not ctx.config.dangerous_disable_rate_limits:
        app.before_request(count_public_request)
        app.before_websocket(count_public_request)
    _register_errors(app)
    _only_named_methods(app)
    return app


def _budgets_of_view(view: Any) -> tuple[Budget, ...]:
    """Return the budgets a view declares."""
    declaration = route_of(view)
    return declaration.budgets if declaration is not None else getattr(view, "budgets", ())


def _only_named_methods(app: Application) -> None:
    """Make API routes respond to HEAD and OPTIONS with 405, as upstream's router does; Quart would add responses."""
    paths = {_shape(rule.rule) for rule in app.url_map.iter_rules()}
    parents = {path[: path.rindex("/")] for path in paths}
    for rule in app.url_map.iter_rules():
        if not rule.rule.startswith("/api/"):
            continue
        # Upstream's router accepts a trailing slash where a path continues, and nowhere else.
        rule.strict_slashes = not rule.rule.endswith("/") and _shape(rule.rule) not in parents
        if rule.methods is not None and not rule.websocket:
            rule.methods -= {"HEAD", "OPTIONS"}


def _shape(path: str) -> str:
    return re.sub(r"<[^<>]*>", "{}", path)


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
    if isinstance(error, WebsocketMismatch) and not has_websocket_context():
        return await _upgrade_required()
    status = error.code or 500
    if has_websocket_context() and (status == 405 or isinstance(error, WebsocketMismatch)):
        status = 404  # there are pages at this address, but no WebSocket
    current = websocket if has_websocket_context() else request
    if status in {404, 405} and is_for_signed_in(current.path):
        refused = await _refuse_strangers()
        if refused is not None:
            return refused
    if status == 404:
        return _json({"message": "Route not found."}, 404)
    if status == 405:
        return _method_not_allowed(current.path, getattr(error, "valid_methods", None) or ())
    if 300 <= status < 400:
        return error.get_response()
    return _json({"message": error.description or error.name}, status)


def _method_not_allowed(path: str, methods: Iterable[str]) -> Response:
    """Return 405 with the allowed methods; without a body where upstream's router sends none."""
    is_empty = path.startswith(EMPTY_405)
    response = Response(b"", 405) if is_empty else _json({"message": "Method not allowed."}, 405)
    if is_empty:
        del response.headers["Content-Type"]
    allowed = ", ".join(sorted(methods))
    if allowed:
        response.headers["Allow"] = allowed
    return response


_PUBLIC_STREAMS = frozenset({"/api/v2/derp-map"})


async def _refuse_strangers() -> Response | None:
    try:
        await authenticate(context(), credentials())
    except Refusal as refusal:
        return await _on_error(refusal)
    return None


async def _upgrade_required() -> Response:
    """Refuse a plain GET on a WebSocket's path; an unauthorized caller gets its refusal first."""
    if request.path not in _PUBLIC_STREAMS:
        refused = await _refuse_strangers()
        if refused is not None:
            return refused
    return needs_upgrade()


def _json(value: JsonObject, status: int) -> Response:
    return Response(codec.encode(value), status, content_type="application/json; charset=utf-8")
