"""Refused settings: this server does not support them, and refuses to start instead of ignoring them.

A deployment that sets one relies on it (a client certificate for a provider, a pool of database logins); ignoring it
would look like support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.coderd.config.options import OPTIONS

if TYPE_CHECKING:
    from coder.coderd.config.settings import ServerConfig

REFUSED = {
    "dangerous_oidc_email_fallback": "an address alone never opens an account that is linked to another login",
    "enable_authz_recordings": "checks of permissions are not recorded",
    "oidc_redirect_allowed_hosts": "people come back to the access URL, or to --oidc-redirect-url",
    "scim_use_legacy": "there is one SCIM API, which behaves like the legacy one",
    "tls_client_cert_file": "this server shows no certificate to services it calls; --oidc-client-cert-file is for the "
    "identity provider, sslcert in --postgres-url for the database, and a proxy in between may add one for others",
    "tls_client_key_file": "this server shows no certificate to services it calls; see --tls-client-cert-file",
    "trace_datadog": "it is about the runtime of another language; --trace sends traces by OTLP, which Datadog's agent reads",
    "wg_tunnel_host": "no public tunnel is opened; give --access-url",
}
"""Reasons by attribute; any value but the default is refused."""


def check_refused(config: ServerConfig) -> None:
    """Raise CoderError `bad_option` for the first refused setting."""
    for option in OPTIONS:
        reason = REFUSED.get(option.name)
        if reason is not None and getattr(config, option.name) != option.default:
            raise CoderError("bad_option", f"--{option.flag} is not supported: {reason}", f"Leave {option.env} unset.")
