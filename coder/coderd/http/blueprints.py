"""Blueprints of the HTTP application. A new noun is one module with `blueprint` and one line in `BLUEPRINTS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coder.coderd.http.access import keys
from coder.coderd.http.agents import agents, init_script, speed_tests, terminals, upgrades, vitals
from coder.coderd.http.apps import applications
from coder.coderd.http.audit import audit
from coder.coderd.http.login import external_auth, oauth2, oauth2_apps, oauth2_registration, provider_logins, sessions
from coder.coderd.http.network import carried_streams
from coder.coderd.http.notifications import inbox, notifications, web_push
from coder.coderd.http.people import (
    groups,
    organization_settings,
    organizations,
    roles,
    scim,
    settings,
    user_secrets,
    user_skills,
    users,
)
from coder.coderd.http.provisioning import provisioners
from coder.coderd.http.proxies import proxy_calls, workspace_proxies
from coder.coderd.http.server import swagger, unsupported
from coder.coderd.http.site import (
    binaries,
    dashboard_files,
    debug,
    deployment,
    documentation,
    experiments,
    health_and_version,
)
from coder.coderd.http.tasks import tasks
from coder.coderd.http.templates import files, insights, rollouts, template_builder, template_versions, templates
from coder.coderd.http.wireguard import wireguard_clients
from coder.coderd.http.workspaces import (
    builds,
    external_agents,
    offered_versions,
    orphaning,
    prebuilds,
    update_previews,
    workspace_settings,
    workspaces,
)

if TYPE_CHECKING:
    from quart import Blueprint

BLUEPRINTS: tuple[Blueprint, ...] = (
    health_and_version.blueprint,
    carried_streams.blueprint,
    sessions.blueprint,
    users.blueprint,
    keys.blueprint,
    organizations.blueprint,
    organization_settings.blueprint,
    groups.blueprint,
    user_secrets.blueprint,
    user_skills.blueprint,
    files.blueprint,
    roles.blueprint,
    settings.blueprint,
    deployment.blueprint,
    applications.blueprint,
    workspace_proxies.blueprint,
    proxy_calls.blueprint,
    inbox.blueprint,
    notifications.blueprint,
    web_push.blueprint,
    audit.blueprint,
    insights.blueprint,
    debug.blueprint,
    prebuilds.blueprint,
    templates.blueprint,
    template_versions.blueprint,
    template_builder.blueprint,
    rollouts.blueprint,
    provisioners.blueprint,
    workspaces.blueprint,
    workspace_settings.blueprint,
    orphaning.blueprint,
    offered_versions.blueprint,
    update_previews.blueprint,
    external_agents.blueprint,
    builds.blueprint,
    agents.blueprint,
    tasks.blueprint,
    terminals.blueprint,
    vitals.blueprint,
    upgrades.blueprint,
    speed_tests.blueprint,
    init_script.blueprint,
    binaries.blueprint,
    experiments.blueprint,
    unsupported.blueprint,
    wireguard_clients.blueprint,
    oauth2.blueprint,
    oauth2_apps.blueprint,
    oauth2_registration.blueprint,
    provider_logins.blueprint,
    external_auth.blueprint,
    scim.blueprint,
    swagger.blueprint,
    # last: takes all remaining paths
    documentation.blueprint,
    dashboard_files.blueprint,
)
