"""Token requests of applications to the OAuth2 provider: a form, and the client's credentials.

A request is counted under the identity it proves (`rate_limits.counted` has the reason): the application that has a
secret, else the user whose consent a code or a token stands for. Requests without valid credentials are counted by
address.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, unquote_plus

from quart import request

from coder.api.base.refusals import Refusal
from coder.coderd.http.server.auth import context, count_request
from coder.coderd.http.server.body_reading import read_bytes
from coder.coderd.services.login import oauth2_client_authentication
from coder.coderd.services.login.oauth2_client_authentication import Client, GrantError

_MAX_FORM = 64 << 10
MALFORMED = "The request is missing required parameters or is otherwise malformed"

Form = dict[str, str]


async def by_client(check: Callable[[Form], str]) -> tuple[Form, Client]:
    """Return the form and its sender. `check` returns the credential: a code, or a token.

    The client is checked first, as upstream does: a request that names none says so whatever else it lacks. Raises
    GrantError, RateLimited.
    """
    try:
        form = await read_form()
        await oauth2_client_authentication.find_app(context(), named_client(form)[0])
        credential = check(form)
        client = await oauth2_client_authentication.authenticate_client(context(), *named_client(form))
    except (GrantError, Refusal):
        await count_request(None)
        raise
    await count_request(await oauth2_client_authentication.rate_limit_account(context(), client, credential))
    await oauth2_client_authentication.note_use(context(), client)
    return form, client


async def read_form() -> Form:
    """Return the form's fields, each once. Raises GrantError invalid_request."""
    try:
        text = (await read_bytes(_MAX_FORM)).decode()
    except UnicodeDecodeError:
        raise GrantError("invalid_request", MALFORMED) from None
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise GrantError("invalid_request", "The form has too many fields") from None
    if any(len(values) > 1 for values in fields.values()):
        raise GrantError("invalid_request", "A parameter is given more than once")
    return {name: values[0] for name, values in fields.items()}


def named_client(form: Mapping[str, str]) -> tuple[str, str]:
    """Return (client id, secret) from HTTP Basic (RFC 6749 section 2.3.1) or the form."""
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            name, _, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise oauth2_client_authentication.invalid_client() from None
        return unquote_plus(name), unquote_plus(secret)
    return form.get("client_id", ""), form.get("client_secret", "")
