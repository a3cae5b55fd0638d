"""Clients that are not ours. Whatever they wait for has a minute: a bound against hanging, as all of the suite's.

httpx gives an answer five seconds when nobody says otherwise, which a machine with much else to do passes.
"""

from __future__ import annotations

import functools
import ssl
from typing import Any

import httpx

PATIENCE = 60.0


@functools.cache
def client_tls() -> ssl.SSLContext:
    """What clients verify servers with. Reading the list of authorities takes 40 ms: once is enough."""
    return httpx.create_ssl_context()


def http_client(base_url: str = "", **options: Any) -> httpx.AsyncClient:
    """With `options` of httpx."""
    return httpx.AsyncClient(base_url=base_url, **{"timeout": PATIENCE, "verify": client_tls(), **options})
