"""Effects of each setting, observed from outside: one server, every setting applied separately, and reverted.

`OBSERVED` holds the settings that are read when a request or a call arrives. Those that other tests observe are in
`observed_elsewhere.tsv`; together with the refused ones and those without effect they are complete.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from coder.base.config import Inputs
from coder.coderd.config.options import FORMER, OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.config.refused import REFUSED
from coder.coderd.config.setting import ServerOption
from coder.coderd.config.settings import effective_name
from coder.coderd.config.without_effect import WITHOUT_EFFECT
from coder.coderd.services.network.derp_map import build_derp_map
from coder.coderd.services.site.retention import limits
from coder.coderd.store.access import keys as key_store
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, workspace_world
from tests.kit.paths import ROOT
from tests.kit.server.server_in_process import FIRST_USER

Observation = Callable[[AgentWorld], Awaitable[Any]]

ELSEWHERE = Path(__file__).with_name("observed_elsewhere.tsv")
HOUR = timedelta(hours=1)


def header(name: str, pattern: str = "(.*)") -> Observation:
    """Return a header of a dashboard page; empty where it does not match."""

    async def probe(machine: AgentWorld) -> Any:
        match = re.search(pattern, (await machine.world.get("/")).headers.get(name, ""))
        return match[1] if match else ""

    return probe


def response_field(path: str, *keys: str) -> Observation:
    async def probe(machine: AgentWorld) -> Any:
        result = (await machine.world.get(path)).json()
        for key in keys:
            result = result.get(key)
        return result

    return probe


def session_cookie(attribute: str) -> Observation:
    async def probe(machine: AgentWorld) -> bool:
        return f"; {attribute}" in await new_session_cookie(machine)

    return probe


async def new_session_cookie(machine: AgentWorld) -> str:
    login = {"email": FIRST_USER["email"], "password": FIRST_USER["password"]}
    answered = await machine.world.post("/api/v2/users/login", login, token="")
    machine.world.client.cookies.clear()
    cookies = [item for item in answered.headers.get_list("set-cookie") if item.startswith("coder_session_token=")]
    return str(cookies[0])


async def password_logins(machine: AgentWorld) -> list[int]:
    """Return statuses of the owner's and another user's login."""
    world = machine.world
    statuses = []
    for email in (FIRST_USER["email"], "carla@b.c"):
        body = {"email": email, "password": FIRST_USER["password"]}
        statuses.append((await world.post("/api/v2/users/login", body, token="")).status_code)
        world.client.cookies.clear()
    return statuses


async def token_lifetime(machine: AgentWorld) -> timedelta:
    """Return the lifetime of a token requested without one; to the hour."""
    key = (await machine.world.post("/api/v2/users/me/keys/tokens", {})).json()["key"].split("-")[0]
    row = (await machine.world.get(f"/api/v2/users/me/keys/{key}")).json()
    lasts = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(row["created_at"])
    return round(lasts / HOUR) * HOUR


async def new_ssh_key(machine: AgentWorld) -> str:
    made = await machine.world.put("/api/v2/users/me/gitsshkey")
    return str(made.json()["public_key"].split()[0])


async def owner_enters_others_workspaces(machine: AgentWorld) -> bool:
    carla = (await machine.world.get("/api/v2/users/carla")).json()["id"]
    asked = {"enter": {"object": {"resource_type": "workspace", "owner_id": carla}, "action": "ssh"}}
    return bool((await machine.world.post("/api/v2/authcheck", {"checks": asked})).json()["enter"])


async def same_report_twice(machine: AgentWorld) -> bool:
    times = [(await machine.world.get("/api/v2/debug/health")).json()["time"] for _ in range(2)]
    return bool(times[0] == times[1])


async def session_is_prolonged(machine: AgentWorld) -> bool:
    """Return whether a use in its last minutes prolongs a session."""
    world = machine.world
    token = await world.login(FIRST_USER["email"], FIRST_USER["password"])
    key_id = token.split("-")[0]
    soon = world.ctx.clock.now() + timedelta(minutes=5)
    user_id = (await world.ctx.db.read(key_store.find_caller, key_id))[1].id  # type: ignore[index]

    async def nearly_over(tx: Any) -> None:
        now = world.ctx.clock.now()
        await key_store.touch(tx, key_id, user_id, now, expires_at=soon, ip="", user_agent="", activate=False)

    await world.ctx.db.run(nearly_over)
    assert (await world.get("/api/v2/users/me", token=token)).status_code == 200
    row = (await world.get(f"/api/v2/users/me/keys/{key_id}")).json()
    return datetime.fromisoformat(row["expires_at"]) > soon + HOUR


async def support_links(machine: AgentWorld) -> list[str]:
    return [link["name"] for link in (await machine.world.get("/api/v2/appearance")).json()["support_links"]]


async def report_interval(machine: AgentWorld) -> timedelta:
    """Return the interval that an agent gets with each response to its statistics."""
    async with connected_agent(machine) as item:
        told = await item.call("UpdateStats", agent_pb2.UpdateStatsRequest(), agent_pb2.UpdateStatsResponse)
    return timedelta(seconds=told.report_interval.ToSeconds())


async def help_for_agents(machine: AgentWorld) -> str:
    return str((await machine.agent())["troubleshooting_url"])


def retention_age(kind: str) -> Observation:
    """Return the age at which rows are purged; the purge uses `retention.limits` only."""

    async def probe(machine: AgentWorld) -> Any:
        now = machine.world.ctx.clock.now()
        result = limits(machine.world.ctx, now).get(kind)
        return result and now - result

    return probe


def own_region(attribute: str) -> Observation:
    """Return a field of the relay map for clients; it is built at the start."""

    async def probe(machine: AgentWorld) -> Any:
        result = build_derp_map(machine.world.ctx.config, machine.world.url)
        return getattr(result.regions.get(999), attribute, None)

    return probe


async def debug_builds(machine: AgentWorld) -> int:
    """Return the status of a build that requests Terraform's debug output."""
    path = f"/api/v2/workspaces/{machine.workspace['id']}/builds"
    asked = {"transition": "start", "dry_run": False, "log_level": "debug"}
    answered = await machine.world.post(path, asked)
    if answered.status_code == 201:
        done = f"/api/v2/workspacebuilds/{answered.json()['id']}/cancel"
        await machine.world.patch(done)
    return answered.status_code


OBSERVED: dict[str, tuple[Any, Observation, Any]] = {
    "additional_csp_policy": (
        ("media-src https://a.example",),
        header("content-security-policy", "(media-src https.*)"),
        "media-src https://a.example",
    ),
    "strict_transport_security": (600, header("strict-transport-security"), "max-age=600"),
    "strict_transport_security_options": (
        ("includeSubDomains", "preload"),
        header("strict-transport-security"),
        "max-age=600; includeSubDomains; preload",
    ),
    "secure_auth_cookie": (True, session_cookie("Secure"), True),
    "samesite_auth_cookie": ("none", session_cookie("SameSite=None"), True),
    "docs_url": ("https://a.example", response_field("/api/v2/appearance", "docs_url"), "https://a.example"),
    "derp_force_websockets": (
        True,
        response_field("/api/v2/workspaceagents/connection", "derp_force_websockets"),
        True,
    ),
    "derp_server_enable": (False, own_region("region_id"), None),
    "disable_password_auth": (True, password_logins, [201, 403]),
    "cli_upgrade_message": ("ask Carla", response_field("/api/v2/buildinfo", "upgrade_message"), "ask Carla"),
    "workspace_hostname_suffix": ("dev", response_field("/api/v2/deployment/ssh", "hostname_suffix"), "dev"),
    "ssh_hostname_prefix": ("dev-", response_field("/api/v2/deployment/ssh", "hostname_prefix"), "dev-"),
    "derp_server_region_code": ("home", own_region("region_code"), "home"),
    "derp_server_region_name": ("Home", own_region("region_name"), "Home"),
    "default_quiet_hours_schedule": (
        "CRON_TZ=UTC 30 4 * * *",
        response_field("/api/v2/users/me/quiet-hours", "time"),
        "04:30",
    ),
    "default_token_lifetime": (3 * HOUR, token_lifetime, 3 * HOUR),
    "terms_of_service_url": (
        "https://a.example/terms",
        response_field("/api/v2/users/authmethods", "terms_of_service_url"),
        "https://a.example/terms",
    ),
    "ssh_keygen_algorithm": ("ecdsa", new_ssh_key, "ecdsa-sha2-nistp256"),
    "disable_owner_workspace_access": (True, owner_enters_others_workspaces, False),
    "health_check_refresh": (timedelta(0), same_report_twice, False),
    "disable_session_expiry_refresh": (True, session_is_prolonged, False),
    "support_links": ('[{"name": "Carla", "target": "https://a.example"}]', support_links, ["Carla"]),
    "agent_stats_refresh_interval": (timedelta(seconds=7), report_interval, timedelta(seconds=7)),
    "agent_fallback_troubleshooting_url": ("https://a.example/help", help_for_agents, "https://a.example/help"),
    "enable_terraform_debug_mode": (True, debug_builds, 201),
    "api_keys_retention": (2 * HOUR, retention_age("expired_api_keys"), 2 * HOUR),
    "workspace_agent_logs_retention": (2 * HOUR, retention_age("workspace_agent_logs"), 2 * HOUR),
}
"""By setting: another value than the default, its observation, and the result then."""


DEPENDENCIES: dict[str, dict[str, Any]] = {"strict_transport_security_options": {"strict_transport_security": 600}}
"""Other settings that a setting depends on."""


async def test_every_setting_has_its_effect() -> None:
    async with workspace_world() as machine:
        world = machine.world
        await world.member("carla")
        plain = world.ctx.config
        for name, (value, probe, expected) in OBSERVED.items():
            world.ctx.config = default = replace(plain, **DEPENDENCIES.get(name, {}))
            before = await probe(machine)
            changed: dict[str, Any] = {name: value}
            if name == "support_links":
                changed = {"resolved": server_config(Inputs(flags={"support-links": value}), Path("/nowhere")).resolved}
            world.ctx.config = replace(default, **changed)
            seen = await probe(machine)
            assert seen == expected != before, name
            world.ctx.config = plain


@pytest.mark.parametrize("former", FORMER)
def test_former_name_sets_current_setting(former: str) -> None:
    option = {option.name: option for option in OPTIONS}[former]
    value = {"bool": "true"}.get(option.kind, "127.0.0.1:7")
    config = server_config(Inputs(flags={option.flag: value}), Path("/nowhere"))
    assert config.resolved is not None and effective_name(config.resolved, FORMER[former]) == former
    shown = getattr(config, FORMER[former])
    assert str(shown.reveal() if hasattr(shown, "reveal") else shown).lower() == value


def names_of(option: ServerOption) -> re.Pattern[str]:
    names = {option.flag, option.env, option.name, FORMER.get(option.name, option.name)} - {""}
    return re.compile(rf"(?<!\w)(?<!\w-)({'|'.join(map(re.escape, sorted(names)))})(?![\w-])")


def other_observations() -> dict[str, str]:
    rows = [line.split("\t") for line in ELSEWHERE.read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    return {row[0]: row[1] for row in rows}


def test_every_setting_is_accounted_for() -> None:
    known = other_observations()
    options = {option.name: option for option in OPTIONS}
    accounted = (*OBSERVED, *FORMER, *REFUSED, *WITHOUT_EFFECT)
    assert {*known, *accounted} == set(options)
    assert known.keys() & set(accounted) == set(), "one place is enough"
    for name, path in known.items():
        assert names_of(options[name]).search((ROOT / path).read_text()), f"{path} says nothing of {name}"
