"""Presigned URLs of AWS Signature Version 4, as far as a database login needs them.

Source: AWS General Reference, "Create a signed AWS API request" and "Authenticating requests: using query parameters".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

EMPTY_PAYLOAD: Final = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """A key that signs requests; `token` is part of temporary ones. The representation shows no secret."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)
    expires_at: datetime | None = None
    "None: never."


@dataclass(frozen=True, slots=True)
class Scope:
    """Where and until when a signature counts."""

    region: str
    service: str
    seconds: int


def presigned_query(
    credentials: AwsCredentials,
    scope: Scope,
    moment: datetime,
    host: str,
    path: str,
    parameters: Mapping[str, str],
    payload: str = EMPTY_PAYLOAD,
) -> str:
    """Return the query string of a presigned GET. `moment` is in UTC; `payload` is the hash that is signed."""
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    place = f"{stamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    values = {
        **parameters,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{credentials.key_id}/{place}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(scope.seconds),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.token:
        values["X-Amz-Security-Token"] = credentials.token
    query = "&".join(f"{_encode(name)}={_encode(values[name])}" for name in sorted(values))
    request = "\n".join(("GET", quote(path, safe="/-_.~"), query, f"host:{host}", "", "host", payload))
    text = "\n".join((_ALGORITHM, stamp, place, hashlib.sha256(request.encode()).hexdigest()))
    signature = hmac.new(signing_key(credentials.secret, stamp[:8], scope), text.encode(), hashlib.sha256).hexdigest()
    return f"{query}&X-Amz-Signature={signature}"


def signing_key(secret: str, day: str, scope: Scope) -> bytes:
    """Return the key of a day (YYYYMMDD), a region and a service."""
    key = f"AWS4{secret}".encode()
    for part in (day, scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def rds_token(credentials: AwsCredentials, region: str, host: str, port: int, user: str, moment: datetime) -> str:
    """Return the password with which `user` logs in to an RDS or Aurora database for the next 15 minutes."""
    address = f"{host}:{port}"
    parameters = {"Action": "connect", "DBUser": user}
    return f"{address}/?{presigned_query(credentials, Scope(region, 'rds-db', 900), moment, address, '/', parameters)}"


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")
