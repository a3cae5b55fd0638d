"""The server's settings, read from defaults, file, environment and flags, and checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from coder.base.config import Inputs, Resolved, resolve
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.coderd.config.checks import check_config, check_links, check_parameters
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.refused import check_refused
from coder.coderd.config.settings import ATTRIBUTES, WRAPS, ServerConfig, effective_name, struct_value
from coder.domain.login.external_providers import ProviderProblem, read_providers


def server_config(inputs: Inputs, data_dir: Path) -> ServerConfig:
    """Read all options. Raises CoderError `bad_option`."""
    resolved = resolve(OPTIONS, inputs)
    values: dict[str, Any] = {}
    for name, kind in ATTRIBUTES.items():
        value = resolved[effective_name(resolved, name)]
        values[name] = WRAPS[kind](value) if kind in WRAPS else value
    check_links(_struct(resolved, "support_links") or None)
    check_parameters(_struct(resolved, "oidc_auth_url_params"))
    listed = _struct(resolved, "external_auth_providers")
    if listed and not isinstance(listed, list):
        raise CoderError("bad_option", "--external-auth-providers is not a list of providers")
    try:
        providers = read_providers(inputs.env, listed)
    except ProviderProblem as error:
        raise CoderError("bad_option", str(error), "See CODER_EXTERNAL_AUTH_0_ID and its siblings.") from error
    config = ServerConfig(data_dir=data_dir, resolved=resolved, external_auth_providers=providers, **values)
    check_config(config)
    check_refused(config)
    return _with_redirect(config, resolved)


def _struct(resolved: Resolved, name: str) -> Json:
    """Return the value of a structured option. Raises CoderError `bad_option`."""
    try:
        return struct_value(resolved[name])
    except ValueError:
        raise CoderError("bad_option", f"--{name.replace('_', '-')} is neither JSON nor YAML") from None


def _with_redirect(config: ServerConfig, resolved: Resolved) -> ServerConfig:
    """Apply `--tls-redirect-http-to-https`, the former way to redirect to the access URL, once TLS is on."""
    was_set = resolved.sources["tls_redirect_http_to_https"] != "default"
    if was_set and config.tls_enable and config.tls_redirect_http_to_https:
        return replace(config, redirect_to_access_url=True)
    return config
