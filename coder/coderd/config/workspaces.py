"""Settings: what may be done with workspaces, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.coderd.config.groups import DANGEROUS, GENERAL, NETWORKING, QUIET_HOURS
from coder.coderd.config.setting import EVERY, concern, setting


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class WorkspaceSettings:
    """What may be done with workspaces."""

    disable_path_apps: bool = setting(
        False,
        "Disable Path Apps",
        "Serve applications at hosts of their own only, and refuse those by path.",
        yaml="disablePathApps",
        path="disable_path_apps?",
        proxies=True,
    )
    dangerous_allow_path_app_sharing: bool = setting(
        False,
        "DANGEROUS: Allow Path App Sharing",
        "Let applications by path be shared, which lets them act as whoever opens them.",
        group=DANGEROUS,
        path="dangerous.allow_path_app_sharing",
    )
    dangerous_allow_path_app_site_owner_access: bool = setting(
        False,
        "DANGEROUS: Allow Site Owners to Access Path Apps",
        "Let owners open other people's applications by path, which can then act as them.",
        group=DANGEROUS,
        path="dangerous.allow_path_app_site_owner_access",
    )
    disable_owner_workspace_access: bool = setting(
        False,
        "Disable Owner Workspace Access",
        "Keep owners of the deployment out of other people's workspaces.",
        yaml="disableOwnerWorkspaceAccess",
        path="disable_owner_workspace_exec?",
        proxies=True,
    )
    disable_workspace_sharing: bool = setting(
        False,
        "Disable Workspace Sharing",
        "Let nobody share a workspace with others.",
        yaml="disableWorkspaceSharing",
        path="disable_workspace_sharing?",
    )
    allow_workspace_renames: bool = setting(
        False,
        "Allow Workspace Renames",
        "Let people rename workspaces, which may cost data in templates that use the name.",
        yaml="allowWorkspaceRenames",
        path="allow_workspace_renames?",
        shown="false",
    )
    browser_only: bool = setting(
        False,
        "Browser Only",
        "Let people reach workspaces through the browser only, not by SSH or port forwards.",
        group=NETWORKING,
        yaml="browserOnly",
        path="browser_only?",
        enterprise=True,
    )
    agent_fallback_troubleshooting_url: str = setting(
        "https://coder.com/docs/admin/templates/troubleshooting",
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
        "How often schedules are looked at.",
        yaml="autobuildPollInterval",
        path="autobuild_poll_interval",
        hidden=True,
        least=EVERY,
    )


@concern(QUIET_HOURS)
@dataclass(frozen=True, kw_only=True)
class QuietHoursSettings:
    """When workspaces may be stopped for a requirement of their template."""

    default_quiet_hours_schedule: str = setting(
        "CRON_TZ=UTC 0 0 * * *",
        "Default Quiet Hours Schedule",
        "When workspaces may be stopped for a template's requirement.",
        env="CODER_QUIET_HOURS_DEFAULT_SCHEDULE",
        yaml="defaultQuietHoursSchedule",
        path="user_quiet_hours_schedule.default_schedule",
    )
    allow_custom_quiet_hours: bool = setting(
        True,
        "Allow Custom Quiet Hours",
        "Let people choose the hours in which required stops happen.",
        yaml="allowCustomQuietHours",
        path="user_quiet_hours_schedule.allow_user_custom",
    )
