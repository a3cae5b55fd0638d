"""Operations that upstream does not have, each with upstream's rule that it could be a way around.

A caller whom the rule refuses is refused at the door: `tests/unit/conformance/test_own_doors.py` calls both as every
kind of caller. docs/security.md has the same table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Door:
    """Addition of this server, or of its programs."""

    what: str
    operations: tuple[str, ...]
    "`METHOD /path` of the API's document; empty for additions elsewhere."
    rule: str
    "Upstream's rule, in words."
    counterpart: str = ""
    "Upstream's operation with that rule; empty if `tests` have the rule."
    tests: str = ""
    "File of tests for what the comparison of callers does not show."


_W, _A, _O = "/api/v2/workspaces/{workspace}", "/api/v2/workspaceagents/{agent}", "/api/v2/organizations/{organization}"
_T = "/api/v2/templates/{template}"
_KEYS = "/api/v2/users/{user}/keys/tokens"
_CLIENTS = "/api/v2/users/{user}/wireguard-clients"
_LEGACY = "/api/v2/oauth2-provider/apps/{app}/legacy"
_SERVICES = "tests/unit/coderd/services"

DOORS = (
    Door(
        "abandoning a workspace",
        (f"POST {_W}/abandon",),
        "orphaning requires `update` on the template; only a successful build lowers the quota",
        f"POST {_W}/builds",
        "tests/unit/conformance/test_attacks_on_quotas.py",
    ),
    Door(
        "inventory of a workspace",
        (f"GET {_W}/inventory",),
        "resources of a build require `read` on the workspace",
        "GET /api/v2/workspacebuilds/{workspacebuild}/resources",
    ),
    Door(
        "previews of an update",
        (
            f"POST {_W}/update-preview",
            f"GET {_W}/update-preview/{{preview}}",
            f"DELETE {_W}/update-preview/{{preview}}",
        ),
        "changing a workspace; a start requires `use` on the template; the plan gets no token and no key",
        f"PATCH {_W}",
        f"{_SERVICES}/workspaces/test_update_previews.py",
    ),
    Door(
        "previews of a version on a template's workspaces",
        (
            f"POST {_T}/update-preview",
            f"GET {_T}/update-preview/{{preview}}",
            f"DELETE {_T}/update-preview/{{preview}}",
        ),
        "changing templates; each workspace requires `update`",
        "PATCH /api/v2/templates/{template}",
        f"{_SERVICES}/workspaces/test_template_previews.py",
    ),
    Door(
        "rotating an external agent's token",
        (f"POST {_W}/external-agent/{{agent}}/rotate-token",),
        "reading the token; no key outlives the consent of the application that created it",
        f"GET {_W}/external-agent/{{agent}}/credentials",
        f"{_SERVICES}/access/test_application_limits.py",
    ),
    Door(
        "creating WireGuard devices",
        (f"POST {_CLIENTS}",),
        "an API key, within the reach of the caller's key and the maximum lifetime of the user's tokens",
        f"POST {_KEYS}",
        f"{_SERVICES}/wireguard/test_wireguard_clients.py",
    ),
    Door(
        "reading WireGuard devices",
        (f"GET {_CLIENTS}", f"GET {_CLIENTS}/{{client}}", "GET /api/v2/wireguard"),
        "reading API keys",
        f"GET {_KEYS}",
    ),
    Door(
        "deleting WireGuard devices",
        (f"DELETE {_CLIENTS}/{{client}}",),
        "deleting API keys",
        "DELETE /api/v2/users/{user}/keys/{keyid}",
    ),
    Door(
        "list of sessions",
        ("GET /api/v2/users/{user}/sessions",),
        "reading API keys",
        f"GET {_KEYS}",
    ),
    Door(
        "template variables of dry runs",
        (),
        "a version with such values requires `create` on the template",
        tests=f"{_SERVICES}/templates/test_dry_run_variables.py",
    ),
    Door(
        "roles of builds' session tokens, read",
        ("GET /api/v2/templates/{template}/build-tokens",),
        "reading templates",
        "GET /api/v2/templates/{template}",
    ),
    Door(
        "roles of builds' session tokens, changed",
        ("PUT /api/v2/templates/{template}/build-tokens",),
        "changing templates; all roles only by an owner of the deployment, whose role the tokens may carry",
        "PATCH /api/v2/templates/{template}",
        f"{_SERVICES}/access/test_build_tokens.py",
    ),
    Door(
        "build report of a template",
        ("GET /api/v2/templates/{template}/build-report",),
        "figures of a template require `view_insights`; a build and its error require `read` on its workspace",
        "GET /api/v2/templates/{template}/daus",
        f"{_SERVICES}/templates/test_build_report.py",
    ),
    Door(
        "rollouts of versions, read",
        ("GET /api/v2/templates/{template}/rollouts",),
        "settings of a template that only its administrators read",
        "GET /api/v2/templates/{template}/acl",
        f"{_SERVICES}/templates/test_rollouts.py",
    ),
    Door(
        "rollouts of versions, changed",
        ("POST /api/v2/templates/{template}/rollouts", "PATCH /api/v2/templates/{template}/rollouts"),
        "changing templates: the last stage makes a version the active one",
        "PATCH /api/v2/templates/{template}",
        f"{_SERVICES}/templates/test_rollouts.py",
    ),
    Door(
        "versions that workspaces are offered",
        ("GET /api/v2/workspaces/offered-versions",),
        "reading workspaces",
        f"GET {_W}",
        f"{_SERVICES}/templates/test_rollouts.py",
    ),
    Door(
        "shared ports that expire",
        (),
        "a port share ends with its workspace, and is at most as open as the template allows",
        tests=f"{_SERVICES}/workspaces/test_port_shares.py",
    ),
    Door(
        "health indicators of an agent",
        (f"GET {_A}/lights",),
        "an agent requires `read` on its workspace",
        f"GET {_A}",
    ),
    Door(
        "flight recorder: disconnects of an agent",
        (f"GET {_A}/disconnects",),
        "an agent requires `read` on its workspace",
        f"GET {_A}",
    ),
    Door(
        "flight recorder: reports of an agent",
        ("POST /api/v2/workspaceagents/me/vitals",),
        "only a running build's agent reports, about itself",
        "GET /api/v2/workspaceagents/me/gitsshkey",
        f"{_SERVICES}/agents/test_vitals.py",
    ),
    Door(
        "upgrade of an agent, read",
        (f"GET {_A}/upgrade",),
        "an agent requires `read` on its workspace",
        f"GET {_A}",
        f"{_SERVICES}/agents/test_upgrades.py",
    ),
    Door(
        "upgrade of an agent, requested",
        (f"POST {_A}/upgrade",),
        "changing a workspace; the agent runs only its own server's program",
        f"PATCH {_W}",
        f"{_SERVICES}/agents/test_upgrades.py",
    ),
    Door(
        "speed test of a connection",
        (f"POST {_A}/speedtest", f"GET {_A}/speedtest/payload", f"POST {_A}/speedtest/payload"),
        "opening a terminal",
        "POST /api/v2/applications/reconnecting-pty-signed-token",
        f"{_SERVICES}/agents/test_speed_tests.py",
    ),
    Door(
        "agents that upgrade themselves",
        ("GET /api/v2/programs", "GET /bin/{name}"),
        "programs are public, and an agent runs only its own server's",
        tests="tests/unit/agent/upgrade/test_fetch.py",
    ),
    Door(
        "command server",
        (),
        "a process of another local user has no session of this user",
        tests="tests/unit/cli/command_server/test_listener.py",
    ),
    Door(
        "health of provisioners",
        (f"GET {_O}/provisionerdaemons/health",),
        "listing provisioners",
        f"GET {_O}/provisionerdaemons",
    ),
    Door(
        "reason why a job waits",
        (f"GET {_O}/provisionerjobs/{{job}}/why",),
        "reading the build of the job, or the jobs of the organization",
        "GET /api/v2/workspacebuilds/{workspacebuild}",
    ),
    Door(
        "parking a job",
        (f"PUT {_O}/provisionerjobs/{{job}}/parked",),
        "reading the job's build; only initiator, owner or `update` on provisioner jobs change it",
        "GET /api/v2/workspacebuilds/{workspacebuild}",
        f"{_SERVICES}/provisioning/test_job_reasons.py",
    ),
    Door(
        "legacy OAuth2 clients, read",
        (f"GET {_LEGACY}",),
        "reading applications",
        "GET /api/v2/oauth2-provider/apps/{app}",
    ),
    Door(
        "legacy OAuth2 clients, changed",
        (f"PUT {_LEGACY}",),
        "changing applications",
        "PUT /api/v2/oauth2-provider/apps/{app}",
        f"{_SERVICES}/login/test_oauth2_provider.py",
    ),
    Door(
        "ending a trial license",
        ("DELETE /api/v2/licenses/trial",),
        "changing licenses",
        "POST /api/v2/licenses",
    ),
    Door(
        "delivery of notifications",
        ("GET /api/v2/notifications/delivery",),
        "reading notification templates",
        "GET /api/v2/notifications/templates/system",
    ),
    Door(
        "connections of users at a workspace proxy",
        ("POST /api/v2/workspaceproxies/me/may-stay",),
        "only a proxy asks about users",
        "POST /api/v2/workspaceproxies/me/issue-signed-app-token",
    ),
)

_SCIM = (
    "DELETE /scim/v2/Users/{ident}",
    *(
        f"GET /scim/v2/{path}"
        for path in ("Groups", "ResourceTypes", "ResourceTypes/{name}", "Schemas", "Schemas/{name}")
    ),
    *(
        f"{method} /scim/v2{path}"
        for method in ("DELETE", "GET", "PATCH", "POST", "PUT")
        for path in ("", "/", "/{rest}")
    ),
)
NO_DOORS = {
    **dict.fromkeys(_SCIM, "SCIM: the identity provider's key alone, as for upstream's operations"),
    "GET /bin/": "answers 404: the list of programs is public, too",
    "GET /api/v2/notifications/passcodes": "public: whether passcodes can be delivered, as the sign-in page shows",
    "GET /derp/streams/{secret}": "public, as /derp: the secret names a relayed stream of the caller's own node",
    "POST /derp/streams/{secret}": "public, as /derp: the secret names a relayed stream of the caller's own node",
    "DELETE /derp/streams/{secret}": "public, as /derp: the secret names a relayed stream of the caller's own node",
    "GET /livez": "public, as /healthz: whether the server lives",
    "GET /readyz": "public, as /healthz: whether the server is ready for requests",
    "GET /swagger/doc.json": "public: the API's document",
    "GET /swagger/index.html": "public: the API's document",
    "GET /api/v2/users/login": "answers 405, as upstream does",
    "GET /oauth2/register": "answers 405, as upstream does",
    "GET /oauth2/revoke": "answers 405, as upstream does",
    "GET /oauth2/tokens": "answers 405, as upstream does",
    "PUT /api/v2/users/{user}/status/{action}": "upstream's two operations, described as one",
}
"""Other operations that upstream's documents do not list, with the reason why they open nothing."""

PARTS_LEFT_OUT = ("/api/v2/agent-firewall/", "/api/v2/ai-gateway/")
"""Paths of parts of upstream that this server does not have: they answer as without a license."""
