"""Logins to a database of Amazon RDS by IAM: each new connection gets a password that was signed for it.

The method travels in the address of the database, as a parameter that no server sees: processes and commands pass
addresses on, and each must log in by itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from coder.base.errors import CoderError

if TYPE_CHECKING:
    from coder.net.aws_credentials import AwsCredentialSource

PASSWORD: Final = "password"  # noqa: S105 - the name of a method
AWS: Final = "awsiamrds"
METHODS: Final = (PASSWORD, AWS)
PARAMETER: Final = "coder_login"
"""Parameter of an address that names the method."""
_TLS_MODES = frozenset({"require", "verify-ca", "verify-full"})
_DEFAULT_PORT = 5432


class IamLogin:
    """Passwords for one user at one host. Raises CoderError `bad_database_url` for an address that cannot have any."""

    def __init__(
        self, parameters: Mapping[str, str], environment: Mapping[str, str] | None = None, source: object = None
    ) -> None:
        self.user, self.host = parameters.get("user", ""), parameters.get("host", "")
        port = parameters.get("port", "") or str(_DEFAULT_PORT)
        self._environment = os.environ if environment is None else environment
        if not self.user or not self.host or "," in self.host + port or self.host.startswith(("/", "@")):
            raise _bad("a login by AWS IAM needs one user and one host", "Write postgres://user@host:5432/name.")
        mode = parameters.get("sslmode", "")
        if mode and mode not in _TLS_MODES:
            raise _bad(f"sslmode={mode} does not demand TLS", "Use sslmode=verify-full with Amazon's sslrootcert.")
        self.port = int(port)
        self._source = source

    def password(self) -> str:
        """Return a password for the next 15 minutes; blocks for the source of credentials.

        Raises CoderError `no_aws_credentials`, or `bad_option` without a region.
        """
        from coder.net.aws_credentials import AwsCredentialSource, Environment, find_region
        from coder.net.aws_signing import rds_token

        environment = Environment(self._environment)
        if self._source is None:
            self._source = AwsCredentialSource(environment)
        source: AwsCredentialSource = self._source  # type: ignore[assignment]
        region = find_region(environment, self.host)
        if not region:
            raise CoderError(
                "bad_option", "a login by AWS IAM needs the region of the database", "Set AWS_REGION, e.g. us-east-1."
            )
        return rds_token(source.current(), region, self.host, self.port, self.user, environment.now())

    def for_driver(self) -> str:
        """Return a password; blocks. Raises OSError: a server that runs treats missing credentials as a database that
        is away."""
        try:
            return self.password()
        except CoderError as error:
            raise OSError(error.message) from error


def with_login(url: str, method: str) -> str:
    """Return the address with its method; unchanged for a password, and for the built-in database (empty)."""
    if method == PASSWORD or not url:
        return url
    text = url.strip()
    if "://" not in text:
        return f"{text} {PARAMETER}={method}"
    mark = "&" if "?" in text.rpartition("@")[2] else "?"
    return f"{text}{mark}{PARAMETER}={method}"


def login_of(parameters: Mapping[str, str]) -> IamLogin | None:
    """Return the login of an address; None for a password. Raises CoderError `bad_database_url`."""
    method = parameters.get(PARAMETER, "")
    if not method:
        return None
    if method != AWS:
        raise _bad(f"{PARAMETER}={method} is unknown", "Remove it, or set CODER_PG_AUTH.")
    return IamLogin(parameters)


def _bad(what: str, way: str) -> CoderError:
    return CoderError("bad_database_url", f"the Postgres URL cannot be used: {what}", way)
