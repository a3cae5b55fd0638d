"""Refusals of login callbacks as pages: a browser is at these addresses, and its user would read raw JSON."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from quart import Response, request

from coder.api.base.refusals import BadGateway, Refusal
from coder.appproxy.http.errors import STATUS
from coder.coderd.http.site import pages

Given = ParamSpec("Given")
_ASK = "If it happens again, tell an administrator of this deployment."


def refused_as_page(view: Callable[Given, Awaitable[Response]]) -> Callable[Given, Awaitable[Response]]:
    """Wrap a view so that a browser (`Accept: text/html`) gets its refusals as a page; programs keep the JSON."""

    @functools.wraps(view)
    async def shown(*args: Given.args, **kwargs: Given.kwargs) -> Response:
        try:
            return await view(*args, **kwargs)
        except Refusal as error:
            if "text/html" not in request.headers.get("Accept", ""):
                raise
            lines = [line for line in (error.detail, _ASK if isinstance(error, BadGateway) else "") if line]
            return pages.problem(STATUS[error.kind], error.message, lines)

    return shown
