"""What `GET /deployment/config` shows: every option with its value and source, and the same values as a tree.

The tree's names and its order are upstream v2.34's; sections of features this server leaves out are not in it. Secrets
are shown as empty texts, whatever their value.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from coder.base.config import Option
from coder.base.duration import format_duration
from coder.coderd.config import effective_name, struct_value
from coder.coderd.options import OPTIONS
from coder.coderd.services.authorization import require
from coder.domain.policy import Resource, Subject

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

_TREE = """
access_url access_url
wildcard_access_url wildcard_access_url ?
docs_url docs_url
redirect_to_access_url redirect_to_access_url ?
http_address http_address
autobuild_poll_interval autobuild_poll_interval
job_hang_detector_interval job_hang_detector_interval
cluster.host cluster_host
derp.server.enable derp_server_enable
derp.server.region_id derp_server_region_id
derp.server.region_code derp_server_region_code
derp.server.region_name derp_server_region_name
derp.server.stun_addresses derp_server_stun_addresses
derp.server.relay_url derp_server_relay_url
derp.config.block_direct block_direct_connections
derp.config.force_websockets derp_force_websockets
derp.config.url derp_config_url
derp.config.path derp_config_path
prometheus.enable prometheus_enable
prometheus.address prometheus_address
prometheus.collect_agent_stats prometheus_collect_agent_stats
prometheus.collect_db_metrics prometheus_collect_db_metrics
prometheus.aggregate_agent_stats_by prometheus_aggregate_agent_stats_by
pprof.enable pprof_enable
pprof.address pprof_address
proxy_trusted_headers proxy_trusted_headers ?
proxy_trusted_origins proxy_trusted_origins ?
cache_directory cache_dir
ephemeral_deployment ephemeral ?
pg_auth postgres_auth
pg_conn_max_open postgres_conn_max_open
pg_conn_max_idle postgres_conn_max_idle
oauth2.github.client_id oauth2_github_client_id
oauth2.github.client_secret oauth2_github_client_secret
oauth2.github.device_flow oauth2_github_device_flow
oauth2.github.default_provider_enable oauth2_github_default_provider_enable
oauth2.github.allowed_orgs oauth2_github_allowed_orgs
oauth2.github.allowed_teams oauth2_github_allowed_teams
oauth2.github.allow_signups oauth2_github_allow_signups
oauth2.github.allow_everyone oauth2_github_allow_everyone
oauth2.github.enterprise_base_url oauth2_github_enterprise_base_url
oidc.allow_signups oidc_allow_signups
oidc.client_id oidc_client_id
oidc.client_secret oidc_client_secret
oidc.client_key_file oidc_client_key_file
oidc.client_cert_file oidc_client_cert_file
oidc.email_domain oidc_email_domain
oidc.issuer_url oidc_issuer_url
oidc.scopes oidc_scopes
oidc.ignore_email_verified oidc_ignore_email_verified
oidc.username_field oidc_username_field
oidc.name_field oidc_name_field
oidc.email_field oidc_email_field
oidc.auth_url_params oidc_auth_url_params
oidc.ignore_user_info oidc_ignore_userinfo
oidc.source_user_info_from_access_token oidc_access_token_claims
oidc.organization_field oidc_organization_field
oidc.organization_mapping oidc_organization_mapping
oidc.organization_assign_default oidc_organization_assign_default
oidc.group_auto_create oidc_group_auto_create
oidc.group_regex_filter oidc_group_regex_filter
oidc.group_allow_list oidc_allowed_groups
oidc.groups_field oidc_group_field
oidc.group_mapping oidc_group_mapping
oidc.user_role_field oidc_user_role_field
oidc.user_role_mapping oidc_user_role_mapping
oidc.user_roles_default oidc_user_role_default
oidc.sign_in_text oidc_sign_in_text
oidc.icon_url oidc_icon_url
oidc.signups_disabled_text oidc_signups_disabled_text
oidc.skip_issuer_checks dangerous_oidc_skip_issuer_checks
oidc.redirect_url oidc_redirect_url
oidc.auto_repair_links oidc_repair_links
oidc.email_fallback dangerous_oidc_email_fallback
oidc.redirect_allowed_hosts oidc_redirect_allowed_hosts
telemetry.enable telemetry
telemetry.trace =false
telemetry.url telemetry_url
tls.enable tls_enable
tls.address tls_address
tls.redirect_http tls_redirect_http_to_https
tls.cert_file tls_cert_file
tls.client_auth tls_client_auth
tls.client_ca_file tls_client_ca_file
tls.key_file tls_key_file
tls.min_version tls_min_version
tls.client_cert_file tls_client_cert_file
tls.client_key_file tls_client_key_file
tls.supported_ciphers tls_ciphers
tls.allow_insecure_ciphers tls_allow_insecure_ciphers
trace.enable trace
trace.honeycomb_api_key trace_honeycomb_api_key
trace.capture_logs trace_logs
trace.data_dog trace_datadog
http_cookies.secure_auth_cookie secure_auth_cookie ?
http_cookies.same_site samesite_auth_cookie
http_cookies.host_prefix host_prefix_cookie ?
strict_transport_security strict_transport_security ?
strict_transport_security_options strict_transport_security_options ?
ssh_keygen_algorithm ssh_keygen_algorithm
metrics_cache_refresh_interval metrics_cache_refresh_interval
agent_stat_refresh_interval agent_stats_refresh_interval
agent_fallback_troubleshooting_url agent_fallback_troubleshooting_url
browser_only browser_only ?
scim_use_legacy scim_use_legacy
provisioner.daemons provisioner_daemons
provisioner.daemon_types provisioner_types
provisioner.daemon_poll_interval provisioner_daemon_poll_interval
provisioner.daemon_poll_jitter provisioner_daemon_poll_jitter
provisioner.force_cancel_interval provisioner_force_cancel_interval
provisioner.daemon_psk provisioner_daemon_psk
rate_limit.disable_all dangerous_disable_rate_limits
rate_limit.api api_rate_limit
experiments experiments ?
update_check update_check ?
swagger.enable swagger_enable
logging.log_filter log_filter
logging.human log_human
logging.json log_json
logging.stackdriver log_stackdriver
dangerous.allow_path_app_sharing dangerous_allow_path_app_sharing
dangerous.allow_path_app_site_owner_access dangerous_allow_path_app_site_owner_access
dangerous.allow_all_cors dangerous_allow_cors_requests
disable_path_apps disable_path_apps ?
session_lifetime.disable_expiry_refresh disable_session_expiry_refresh ?
session_lifetime.default_duration session_duration
session_lifetime.refresh_default_duration default_oauth_refresh_lifetime
session_lifetime.default_token_lifetime default_token_lifetime
session_lifetime.max_token_lifetime max_token_lifetime
session_lifetime.max_admin_token_lifetime max_admin_token_lifetime
disable_password_auth disable_password_auth ?
support.links support_links
external_auth =[]
config_ssh.DeploymentName ssh_hostname_prefix
config_ssh.SSHConfigOptions ssh_config_options
disable_owner_workspace_exec disable_owner_workspace_access ?
disable_workspace_sharing disable_workspace_sharing ?
proxy_health_status_interval proxy_health_interval
enable_terraform_debug_mode enable_terraform_debug_mode ?
user_quiet_hours_schedule.default_schedule default_quiet_hours_schedule
user_quiet_hours_schedule.allow_user_custom allow_custom_quiet_hours
web_terminal_renderer web_terminal_renderer
allow_workspace_renames allow_workspace_renames ?
healthcheck.refresh health_check_refresh
healthcheck.threshold_database health_check_threshold_database
retention.audit_logs audit_logs_retention
retention.connection_logs connection_logs_retention
retention.api_keys api_keys_retention
retention.workspace_agent_logs workspace_agent_logs_retention
retention.boundary_logs boundary_log_retention
cli_upgrade_message cli_upgrade_message ?
terms_of_service_url terms_of_service_url ?
notifications.max_send_attempts notifications_max_send_attempts
notifications.retry_interval notifications_retry_interval
notifications.sync_interval notifications_store_sync_interval
notifications.sync_buffer_size notifications_store_sync_buffer_size
notifications.lease_period notifications_lease_period
notifications.lease_count notifications_lease_count
notifications.fetch_interval notifications_fetch_interval
notifications.method notifications_method
notifications.dispatch_timeout notifications_dispatch_timeout
notifications.email.from email_from
notifications.email.smarthost email_smarthost
notifications.email.hello email_hello
notifications.email.auth.identity email_auth_identity
notifications.email.auth.username email_auth_username
notifications.email.auth.password email_auth_password
notifications.email.auth.password_file email_auth_password_file
notifications.email.tls.start_tls email_tls_starttls
notifications.email.tls.server_name email_tls_server_name
notifications.email.tls.insecure_skip_verify email_tls_skip_verify
notifications.email.tls.ca_file email_tls_ca_cert_file
notifications.email.tls.cert_file email_tls_cert_file
notifications.email.tls.key_file email_tls_cert_key_file
notifications.email.force_tls email_force_tls
notifications.webhook.endpoint notifications_webhook_endpoint
notifications.inbox.enabled notifications_inbox_enabled
additional_csp_policy additional_csp_policy ?
workspace_hostname_suffix workspace_hostname_suffix
workspace_prebuilds.reconciliation_interval workspace_prebuilds_reconciliation_interval
workspace_prebuilds.reconciliation_backoff_interval workspace_prebuilds_reconciliation_backoff_interval
workspace_prebuilds.reconciliation_backoff_lookback workspace_prebuilds_reconciliation_backoff_lookback_period
workspace_prebuilds.failure_hard_limit workspace_prebuilds_failure_hard_limit
stats_collection.usage_stats.enable stats_collection_usage_stats_enable
address address
"""
"""Path in the tree, then the option that is there or `=` and JSON; `?` leaves an empty value out, as upstream does."""

_BY_NAME = {option.name: option for option in OPTIONS}
_LEAVES = tuple(tuple(line.split(maxsplit=2)) for line in _TREE.strip().splitlines())


def configuration(ctx: Context, subject: Subject) -> dict[str, Any]:
    """Options with their values and sources, and the tree; secrets are left out. Raises Forbidden."""
    require(subject, "read", Resource("deployment_config"), hidden=False)
    return {"config": tree(ctx), "options": [_shown(ctx, option) for option in OPTIONS]}


def tree(ctx: Context) -> dict[str, Any]:
    """The values as nested objects."""
    result: dict[str, Any] = {}
    for path, source, *flags in _LEAVES:
        value = json.loads(source[1:]) if source.startswith("=") else _leaf(ctx, source)
        if flags and not value:
            continue
        *parents, name = path.split(".")
        node = result
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return result


def _leaf(ctx: Context, name: str) -> Any:
    option = _BY_NAME.get(name)
    if option is None or option.secret:
        return ""
    if name == "access_url":
        return ctx.access_url
    value = _json_value(option, _value(ctx, option))
    if option.kind == "struct" and option.name != "support_links":
        return value or {}
    return value


def _value(ctx: Context, option: Option) -> Any:
    if option.secret:
        return None
    if option.name == "api_rate_limit" and ctx.config.dangerous_disable_rate_limits:
        return -1  # what it comes to
    if ctx.config.resolved is not None:
        return ctx.config.resolved[effective_name(ctx.config.resolved, option.name)]
    return getattr(ctx.config, option.name, option.default)


def _json_value(option: Option, value: Any) -> Any:
    if value is None:
        return None
    if option.kind == "duration" and isinstance(value, timedelta):
        return int(value.total_seconds() * 1e9)
    if option.kind == "string-array":
        return list(value) or None
    if option.kind == "struct":
        return struct_value(value) or None
    return to_builtins(value, enc_hook=str)


def _shown(ctx: Context, option: Option) -> dict[str, Any]:
    default = option.default
    if isinstance(default, timedelta):
        default = format_duration(default)
    elif isinstance(default, tuple):
        default = ",".join(default)
    elif isinstance(default, bool):
        default = "true" if default else ""
    shown: dict[str, Any] = {
        "name": option.flag.replace("-", " ").title(),
        "description": option.help,
        "flag": option.flag,
        "env": option.env,
        "default": str(default),
        "value": _json_value(option, _value(ctx, option)),
        "group": {"name": option.group},
        "hidden": option.hidden,
    }
    if option.short:
        shown["flag_shorthand"] = option.short
    if option.yaml:
        shown["yaml"] = option.yaml.rsplit(".", 1)[-1]
    if option.secret:
        shown["annotations"] = {"secret": "true"}
    if ctx.config.resolved is not None:
        shown["value_source"] = ctx.config.resolved.sources[option.name]
    return shown
