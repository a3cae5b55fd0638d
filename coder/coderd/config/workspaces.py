"""Settings: what may be done with workspaces, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.coderd.config.groups import DANGEROUS, GENERAL, NETWORKING, QUIET_HOURS
from coder.coderd.config.setting import concern, setting


# fmt: off
@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class WorkspaceSettings:
    """What may be done with workspaces."""

    disable_path_apps: bool = setting(False, "Disable Path Apps", "Refuse applications by path.", yaml="disablePathApps", path="disable_path_apps?", proxies=True)
    dangerous_allow_path_app_sharing: bool = setting(False, "DANGEROUS: Allow Path App Sharing", "Let path applications be shared.", group=DANGEROUS, path="dangerous.allow_path_app_sharing")
    dangerous_allow_path_app_site_owner_access: bool = setting(False, "DANGEROUS: Allow Site Owners to Access Path Apps", "Let site owners open others' path applications.", group=DANGEROUS, path="dangerous.allow_path_app_site_owner_access")
    disable_owner_workspace_access: bool = setting(False, "Disable Owner Workspace Access", "Owners cannot enter others' workspaces.", yaml="disableOwnerWorkspaceAccess", path="disable_owner_workspace_exec?", proxies=True)
    disable_workspace_sharing: bool = setting(False, "Disable Workspace Sharing", "Nobody can share a workspace.", yaml="disableWorkspaceSharing", path="disable_workspace_sharing?")
    allow_workspace_renames: bool = setting(False, "Allow Workspace Renames", "Let users rename workspaces.", yaml="allowWorkspaceRenames", path="allow_workspace_renames?", shown="false")
    browser_only: bool = setting(False, "Browser Only", "Refuse everything but the browser.", group=NETWORKING, yaml="browserOnly", path="browser_only?", enterprise=True)
    agent_fallback_troubleshooting_url: str = setting("https://coder.com/docs/admin/templates/troubleshooting", "Agent Fallback Troubleshooting URL", "Help for agents that do not connect.", yaml="agentFallbackTroubleshootingURL", path="agent_fallback_troubleshooting_url", hidden=True)
    agent_stats_refresh_interval: timedelta = setting(timedelta(seconds=30), "Agent Stat Refresh Interval", "How often agents report.", path="agent_stat_refresh_interval", hidden=True)
    autobuild_poll_interval: timedelta = setting(timedelta(minutes=1), "Autobuild Poll Interval", "How often schedules are looked at.", yaml="autobuildPollInterval", path="autobuild_poll_interval", hidden=True)


@concern(QUIET_HOURS)
@dataclass(frozen=True, kw_only=True)
class QuietHoursSettings:
    """When workspaces may be stopped for a requirement of their template."""

    default_quiet_hours_schedule: str = setting("CRON_TZ=UTC 0 0 * * *", "Default Quiet Hours Schedule", "When workspaces may be stopped for a template's requirement.", env="CODER_QUIET_HOURS_DEFAULT_SCHEDULE", yaml="defaultQuietHoursSchedule", path="user_quiet_hours_schedule.default_schedule")
    allow_custom_quiet_hours: bool = setting(True, "Allow Custom Quiet Hours", "Let users choose theirs.", yaml="allowCustomQuietHours", path="user_quiet_hours_schedule.allow_user_custom")
