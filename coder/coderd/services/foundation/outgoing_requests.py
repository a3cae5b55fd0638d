"""Requests of this server to other servers, such as identity providers.

Each request uses a fresh connection and the proxy of the server's environment. Replies are bounded in time and size:
the other server may be untrusted, and parsing its reply blocks every other task. URLs and tokens that it sent earlier
are untrusted, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, urlencode, urlsplit

import h11
import trio

from coder.base.json_types import JsonObject
from coder.base.secret import Secret
from coder.net.errors import NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

_TIMEOUT = 15.0
DOCUMENT = 1 << 20
"Bytes of a reply, unless the caller passes fewer: the keys of a provider, a page of a hundred teams."
SMALL = 64 << 10
"Bytes of one report or one certificate."
_MOST_FIELDS = 100
MAX_URL = 8 << 10
"Characters of a URL (ours) that another server sent; browsers and proxies accept no longer ones everywhere."
_ANY_STATUS = tuple(range(100, 1000))


@dataclass(frozen=True, slots=True)
class OutgoingReply:
    """Untrusted reply of another server."""

    status: int
    body: bytes

    @property
    def fine(self) -> bool:
        return 200 <= self.status < 300

    def document(self) -> JsonObject:
        """Decode a JSON object, or a form as some token endpoints send it. Raises ValueError."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            fields = parse_qs(self.body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
            if "access_token" not in fields and "error" not in fields and "device_code" not in fields:
                raise ValueError("the reply is not JSON") from None
            return {name: values[0] for name, values in fields.items()}
        if not isinstance(document, dict):
            raise ValueError("the reply is not a JSON object")
        return document


async def fetch(
    method: str,
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    bearer: Secret | None = None,
    headers: Mapping[str, str] | None = None,
    limit: int = DOCUMENT,
) -> OutgoingReply:
    """Send a request and return its reply, whatever its status. Raises NetError without a reply within `limit`
    bytes, and for a URL or a header that cannot be sent.
    """
    parts = split_url(url)
    if parts is None:
        raise NetError("protocol", "its URL is not one of HTTP")
    fields = [("Accept", "application/json"), *(headers or {}).items()]
    if bearer is not None:
        fields.append(("Authorization", f"Bearer {bearer.reveal()}"))
    body = None
    if form is not None:
        body = urlencode(form).encode()
        fields.append(("Content-Type", "application/x-www-form-urlencoded"))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        async with HttpClient(DialPolicy(f"{parts.scheme}://{parts.netloc}")) as client:
            answer = await client.request(
                method, path, body=body, headers=fields, expect=_ANY_STATUS, timeout=_TIMEOUT, limit=limit
            )
    except (h11.LocalProtocolError, UnicodeError) as error:  # a token with a line break
        raise NetError("protocol", "the request has characters that HTTP cannot send") from error
    except (OSError, trio.BrokenResourceError) as error:
        raise NetError("unreachable", "the connection broke") from error
    return OutgoingReply(answer.status, answer.body)


def split_url(url: str) -> SplitResult | None:
    """Split an absolute URL of HTTP; None for any other text."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # a bracket without its end, a port out of range
        return None
    return parts if is_usable and len(url) <= MAX_URL and url.isascii() and url.isprintable() else None
