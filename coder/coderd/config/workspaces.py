"""Settings: limits and schedules of workspaces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.coderd.config.groups import DANGEROUS, GENERAL, NETWORKING, QUIET_HOURS
from coder.coderd.config.setting import EVERY, concern, setting

DEFAULT_TROUBLESHOOTING_URL = "https://coder.com/docs/admin/templates/troubleshooting"
"""Upstream's page; the server links to its own instead if its documentation is built in."""


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class WorkspaceSettings:
    """Limits of workspaces."""

    disable_path_apps: bool = setting(
        False,
        "Disable Path Apps",
        "Serve applications on separate hosts only, and refuse path-based ones.",
        yaml="disablePathApps",
        path="disable_path_apps?",
        proxies=True,
    )
    dangerous_allow_path_app_sharing: bool = setting(
        False,
        "DANGEROUS: Allow Path App Sharing",
        "Allow sharing of path-based applications, which can then act as the user who opens them.",
        group=DANGEROUS,
        path="dangerous.allow_path_app_sharing",
    )
    dangerous_allow_path_app_site_owner_access: bool = setting(
        False,
        "DANGEROUS: Allow Site Owners to Access Path Apps",
        "Allow owners to open other users' path-based applications, which can then act as the owner.",
        group=DANGEROUS,
        path="dangerous.allow_path_app_site_owner_access",
    )
    disable_owner_workspace_access: bool = setting(
        False,
        "Disable Owner Workspace Access",
        "Deny owners of the deployment access to other users' workspaces.",
        yaml="disableOwnerWorkspaceAccess",
        path="disable_owner_workspace_exec?",
        proxies=True,
    )
    disable_workspace_sharing: bool = setting(
        False,
        "Disable Workspace Sharing",
        "Disable sharing of workspaces.",
        yaml="disableWorkspaceSharing",
        path="disable_workspace_sharing?",
    )
    withhold_owner_identity: bool = setting(
        False,
        "Withhold Owner Identity",
        "Withhold the owner's session token, SSH key, secrets and provider tokens from builds that another user starts.",
        yaml="withholdOwnerIdentity",
    )
    allow_workspace_renames: bool = setting(
        False,
        "Allow Workspace Renames",
        "Allow users to rename workspaces, which may lose data in templates that use the name.",
        yaml="allowWorkspaceRenames",
        path="allow_workspace_renames?",
        shown="false",
    )
    browser_only: bool = setting(
        False,
        "Browser Only",
        "Allow access to workspaces through the browser only, not by SSH or port forwards.",
        group=NETWORKING,
        yaml="browserOnly",
        path="browser_only?",
        enterprise=True,
    )
    agent_fallback_troubleshooting_url: str = setting(
        DEFAULT_TROUBLESHOOTING_URL,
        "Agent Fallback Troubleshooting URL",
        "Help for agents that do not connect.",
        yaml="agentFallbackTroubleshootingURL",
        path="agent_fallback_troubleshooting_url",
        hidden=True,
    )
    agent_stats_refresh_interval: timedelta = setting(
        timedelta(seconds=30),
        "Agent Stat Refresh Interval",
        "How often agents report.",
        path="agent_stat_refresh_interval",
        hidden=True,
        least=EVERY,
    )
    autobuild_poll_interval: timedelta = setting(
        timedelta(minutes=1),
        "Autobuild Poll Interval",
        "Interval at which schedules are checked.",
        yaml="autobuildPollInterval",
        path="autobuild_poll_interval",
        hidden=True,
        least=EVERY,
    )


@concern(QUIET_HOURS)
@dataclass(frozen=True, kw_only=True)
class QuietHoursSettings:
    """Hours at which workspaces may be stopped for their template's requirement."""

    default_quiet_hours_schedule: str = setting(
        "CRON_TZ=UTC 0 0 * * *",
        "Default Quiet Hours Schedule",
        "Hours at which workspaces may be stopped for a template's requirement.",
        env="CODER_QUIET_HOURS_DEFAULT_SCHEDULE",
        yaml="defaultQuietHoursSchedule",
        path="user_quiet_hours_schedule.default_schedule",
    )
    allow_custom_quiet_hours: bool = setting(
        True,
        "Allow Custom Quiet Hours",
        "Allow users to choose the hours of required stops.",
        yaml="allowCustomQuietHours",
        path="user_quiet_hours_schedule.allow_user_custom",
    )
