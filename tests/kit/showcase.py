"""A deployment that looks lived in, for pictures and measurements of the dashboard: people, templates, workspaces,
devices, tokens, messages. Everything is made through the API, as people would.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kit.loopback import Loopback, open_loopback

EMAIL = "ana@example.com"
PASSWORD = "Showcase-Password-7-very-long"
DAY_NS = 86_400 * 10**9
PEOPLE = (("ben", "Ben Okafor"), ("chloe", "Chloé Martin"), ("dmitri", "Dmitri Ivanov"), ("emi", "Emi Tanaka"))
BUILT = ("backend", "docs-site", "data-pipeline")
MACHINES = ("build-server", "gpu-box")
SOON = 90.0


@dataclass
class Showcase:
    server: Loopback
    external: str = MACHINES[0]
    "An external machine whose agent runs."
    built: str = BUILT[0]
    "A workspace of the server's own machine."

    @property
    def url(self) -> str:
        return self.server.url

    def api(self, method: str, path: str, body: object = None) -> Any:
        return self.server.request(method, f"/api/v2{path}", body, self.server.token)


@contextlib.contextmanager
def open_showcase(*options: str) -> Iterator[Showcase]:
    usual = ("--wireguard-address", "127.0.0.1:0", "--agent-stats-refresh-interval", "5s")
    with open_loopback(*usual, *options) as server:
        yield fill(server)


def fill(server: Loopback) -> Showcase:
    user = {"email": EMAIL, "username": "ana", "name": "Ana Santos", "password": PASSWORD, "trial": False}
    server.request("POST", "/api/v2/users/first", user)
    server.sign_in(EMAIL, PASSWORD)
    made = Showcase(server)
    organization = made.api("GET", "/organizations")[0]["id"]
    _people(made, organization)
    _personal(made)
    server.push_external_template()
    server.push_local_template()
    for name in MACHINES:
        server.create_external(name)
    for name in BUILT:
        server.coder("create", name, "--template=local-process", "-y")
    server.coder("stop", BUILT[1], "-y")
    server.coder("favorite", BUILT[0])
    _attach(made)
    return made


def _people(made: Showcase, organization: str) -> None:
    for name, full in PEOPLE:
        body = {"email": f"{name}@example.com", "username": name, "name": full, "password": PASSWORD}
        made.api("POST", "/users", {**body, "organization_ids": [organization]})
    group = made.api("POST", f"/organizations/{organization}/groups", {"name": "backend", "display_name": "Backend"})
    ids = [made.api("GET", f"/users/{name}")["id"] for name in ("ana", "ben", "chloe")]
    made.api("PATCH", f"/groups/{group['id']}", {"add_users": ids, "remove_users": []})


def _personal(made: Showcase) -> None:
    for name, days, scopes in (("ci", 7, ["coder:templates.build"]), ("backup-script", 2, ["all"])):
        made.api("POST", "/users/me/keys/tokens", {"token_name": name, "lifetime": days * DAY_NS, "scopes": scopes})
    npm = {"name": "npm-token", "value": "x", "env_name": "NPM_TOKEN", "description": "Private registry"}
    made.api("POST", "/users/me/secrets", npm)
    key = "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw="
    made.api("POST", "/users/me/wireguard-clients", {"name": "phone", "public_key": key, "lifetime_seconds": 2_592_000})
    for title, text in (
        ("Maintenance on Sunday", "Workspaces are stopped from **02:00** to 03:00 UTC. Save your work before."),
        ("New template", "`gpu-training` is ready to use. It has CUDA 12 and 80 GB of memory."),
    ):
        made.api("POST", "/notifications/custom", {"content": {"title": title, "message": text}})


def _attach(made: Showcase) -> None:
    """The machine's agent connects and writes some of a log."""
    import re

    shown = made.server.coder("external-workspaces", "agent-instructions", made.external, "--output=text")
    found = re.search(r'CODER_AGENT_TOKEN="([^"]+)"', shown)
    assert found is not None, shown
    made.server.start_agent(found[1])
    for line in ("installing tools", "\x1b[32mgit\x1b[0m 2.47", "\x1b[32mnode\x1b[0m 22.11", "ready"):
        made.server.write_agent_log(found[1], line)
    limit = time.monotonic() + SOON
    while agent_status(made, made.external) != "connected":
        assert time.monotonic() < limit, made.server.log_ends()
        time.sleep(0.2)


def agent_status(made: Showcase, workspace: str) -> str:
    found = made.api("GET", f"/users/me/workspace/{workspace}")
    return str(found["latest_build"]["resources"][0]["agents"][0]["status"])
