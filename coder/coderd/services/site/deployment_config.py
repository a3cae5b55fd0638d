"""Response of `GET /deployment/config`: every option with its value and source, and the values as a tree.

Names, groups and positions in the tree are defined with the settings (`coderd.config`). Sections of features that this
server lacks are left out. Secrets are shown as empty texts or not at all, independent of their value.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import to_builtins

from coder.base.json_types import Json, JsonObject
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.setting import ServerOption, SettingGroup
from coder.coderd.config.settings import effective_name, struct_value
from coder.coderd.services.access.authorization import require
from coder.domain.access.policy import Class, Subject
from coder.domain.login.external_providers import ExternalProvider
from coder.net.masking import shown_setting

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_BY_FLAG = {option.flag: option for option in OPTIONS}
_SORTED = sorted(OPTIONS, key=lambda option: option.title)


def configuration(ctx: Context, subject: Subject) -> JsonObject:
    """Return the options with values and sources, and the tree, without secrets. Raises Forbidden."""
    require(subject, "read", Class("deployment_config"), hidden=False)
    return {"config": tree(ctx), "options": [_option_view(ctx, option, top=True) for option in _SORTED]}


def tree(ctx: Context) -> JsonObject:
    """Return the values as nested objects."""
    result: JsonObject = {}
    for option in OPTIONS:
        if option.path:
            value = _leaf(ctx, option)
            if value or not option.path.endswith("?"):
                _set_value(result, option.path.removesuffix("?"), value)
    _set_value(result, "telemetry.trace", False)
    _set_value(result, "external_auth", _providers(ctx))
    return result


def _set_value(result: JsonObject, path: str, value: Json) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        section = result.setdefault(parent, {})
        if not isinstance(section, dict):
            raise TypeError(f"{path} is below a value")
        result = section
    result[name] = value


def _leaf(ctx: Context, option: ServerOption) -> Json:
    if option.secret:
        return ""
    if option.name == "access_url":
        return ctx.access_url
    return _json_value(option, _value(ctx, option))


def _value(ctx: Context, option: ServerOption) -> object:
    if option.name == "api_rate_limit" and ctx.config.dangerous_disable_rate_limits:
        return -1  # the effective value
    if ctx.config.resolved is not None:
        return ctx.config.resolved[effective_name(ctx.config.resolved, option.name)]
    return getattr(ctx.config, option.name, option.default)


def _json_value(option: ServerOption, value: object) -> Json:
    if option.kind == "duration" and isinstance(value, timedelta):
        return value // timedelta(microseconds=1) * 1000
    if option.kind == "string-array":
        return [*shown_setting(value)] or None if isinstance(value, list | tuple) else None
    plain: Json = shown_setting(to_builtins(value, enc_hook=str))
    if option.kind == "struct":
        # Mappings default to an empty one, lists to null: Go's clients decode each into its type.
        return struct_value(plain) or ({} if option.default else None)
    return plain


def _option_view(ctx: Context, option: ServerOption, *, top: bool) -> JsonObject:
    """Return an option as the API has it: empty fields are left out, except the value."""
    view: JsonObject = {"name": option.title, "description": option.help, "flag": option.flag}
    optional = {
        "flag_shorthand": option.short,
        "env": option.env,
        "yaml": option.yaml.rsplit(".", 1)[-1],
        "default": option.shown_default,
    }
    view |= {name: text for name, text in optional.items() if text}
    if not option.secret:
        view["value"] = _option_value(ctx, option)
    if option.annotations:
        view["annotations"] = dict(option.annotations)
    if option.group_of is not None:
        view["group"] = _group(option.group_of)
    if option.hidden:
        view["hidden"] = True
    if top and option.instead:
        view["use_instead"] = [_option_view(ctx, _BY_FLAG[flag], top=False) for flag in option.instead]
    if top and (source := _source(ctx, option)):
        view["value_source"] = source
    return view


def _option_value(ctx: Context, option: ServerOption) -> Json:
    if option.name == "external_auth_providers":
        return _providers(ctx)
    value = _json_value(option, _value(ctx, option))
    return {"Choices": list(option.choices), "Value": value} if option.enum else value


def _source(ctx: Context, option: ServerOption) -> str:
    if ctx.config.resolved is None:
        return ""
    source = ctx.config.resolved.sources[option.name]
    return "" if source == "default" and not option.shown_default else source


def _group(group: SettingGroup) -> JsonObject:
    section: JsonObject = {} if group.parent is None else {"parent": _group(group.parent)}
    section["name"] = group.name
    if group.yaml:
        section["yaml"] = group.yaml
    if group.description:
        section["description"] = group.description
    return section


def _providers(ctx: Context) -> list[JsonObject]:
    return [_provider(provider, ctx.access_url) for provider in ctx.config.external_auth_providers]


def _provider(provider: ExternalProvider, access_url: str) -> JsonObject:
    return {
        "type": provider.kind,
        "client_id": provider.client_id,
        "id": provider.id,
        "auth_url": provider.auth_url,
        "token_url": provider.token_url,
        "validate_url": provider.validate_url,
        "redirect_url": f"{access_url}/external-auth/{provider.id}/callback",
        "revoke_url": provider.revoke_url,
        "app_install_url": provider.app_install_url,
        "app_installations_url": provider.app_installations_url,
        "no_refresh": provider.no_refresh,
        "scopes": list(provider.scopes),
        "device_flow": provider.device_flow,
        "device_code_url": provider.device_code_url,
        "mcp_url": "",
        "mcp_tool_allow_regex": "",
        "mcp_tool_deny_regex": "",
        "regex": provider.regex,
        "api_base_url": "",
        "display_name": provider.display_name,
        "display_icon": provider.display_icon,
        "code_challenge_methods_supported": ["S256"] if provider.pkce else [],
    }
