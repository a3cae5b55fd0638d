"""Refusals of the OAuth2 provider: disabled without its experiment, else in the words of the RFCs."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from quart import Response

from coder.api.base.refusals import Forbidden
from coder.coderd.http.server.auth import context, count_request
from coder.coderd.http.server.declarations import declared
from coder.coderd.services.login import oauth2_apps
from coder.coderd.services.login.oauth2_client_authentication import GrantError
from coder.domain.access.route_scopes import APPLICATION

P = ParamSpec("P")
View = Callable[P, Awaitable[Response]]


def experimental(view: View[P]) -> View[P]:
    """Wrap a view that exists only while the experiment is enabled."""

    @functools.wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            oauth2_apps.require_experiment(context())
        except Forbidden:
            if declared().scope is APPLICATION:  # counted by the view, which does not run
                await count_request(None)
            raise
        return await view(*args, **kwargs)

    return guarded


def refusing(view: View[P]) -> View[P]:
    """Wrap a view: respond to a GrantError as the RFCs require."""

    @functools.wraps(view)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await view(*args, **kwargs)
        except GrantError as error:
            return refusal(error)

    return answered


def refusal(error: GrantError, content_type: str = "application/json; charset=utf-8") -> Response:
    body = json.dumps({"error": error.error, "error_description": error.description}, separators=(",", ":"))
    response = Response(body, error.status, content_type=content_type)
    if error.error == "invalid_client":
        response.headers["WWW-Authenticate"] = 'Basic realm="coder"'
    return response
