"""Every page of the dashboard, its visitor, the deployment that fills it, and the files it loads.

`tests/data/dashboard_pages/contract.tsv` is the one list: texts of a page, axe-core's findings, whether it fits a
phone, pictures and measurements all take their pages from there. The showcase is a deployment with people, templates,
workspaces, devices, tokens and messages, all made through the API. `page_files` are what a browser loads before a page
shows: the files index.html names, and the page's own part with its imports, without what loads later (menus of the
frame, charts, editors).
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.server.server_process import ROOT, Loopback, open_loopback

FOLDER = ROOT / "tests/data/dashboard_pages"
NO_ACCOUNT = ("first", "nobody")
"""Signed-out visitors: before there is any account, and after."""
OPTIONS = ("--wireguard-address", "127.0.0.1:0", "--agent-stats-refresh-interval", "5s", "--experiments=oauth2")
TASK = {"name": "mend-it", "display_name": "Mend it", "input": "Mend the build."}


@dataclass(frozen=True)
class Visit:
    """A page as seen by one user, after the given elements were opened."""

    who: str
    page: str
    opened: str

    def __str__(self) -> str:
        return f"{self.who} {self.page}" + ("" if self.opened == "-" else f" {self.opened}")

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Elements to click, one after the other, as (kind, name)."""
        parts = [] if self.opened == "-" else self.opened.split(" > ")
        return [(kind, name) for kind, _, name in (part.partition(":") for part in parts)]


def _read() -> dict[Visit, list[tuple[str, str]]]:
    visits: dict[Visit, list[tuple[str, str]]] = {}
    for line in (FOLDER / "contract.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            who, page, opened, kind, name = line.split("\t")
            visits.setdefault(Visit(who, page, opened), []).append((kind, name))
    return visits


CONTRACT = _read()
"""Expected elements of each visit as (kind, name)."""
PAGES = tuple(visit for visit in CONTRACT if not visit.steps)
"""Visits without any click, one per page and user of the table."""


@dataclass(frozen=True)
class Names:
    """Values of the `{placeholders}` in the table's addresses and names, for one deployment."""

    version: str
    app: str

    def filled(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(getattr(self, found[1])), text)


def names(showcase: Showcase) -> Names:
    return Names(active(showcase)["name"], showcase.api("GET", "/oauth2-provider/apps")[0]["id"])


def active(showcase: Showcase) -> dict[str, Any]:
    """Return the active version of the template `everything`."""
    version = showcase.api("GET", "/organizations/default/templates/everything")["active_version_id"]
    active_version: dict[str, Any] = showcase.api("GET", f"/templateversions/{version}")
    return active_version


def with_provider(server: Loopback) -> None:
    """Configure an external provider for linking: nothing answers at its address, and only a link requests it.

    No server accepts the mail either; a configured mail server is enough for the password reset form.
    """
    link, forge = "CODER_EXTERNAL_AUTH_0_", "https://forge.example.com"
    server.variables = {
        "CODER_EMAIL_SMARTHOST": "127.0.0.1:9",
        f"{link}ID": "forge",
        f"{link}TYPE": "custom",
        f"{link}DISPLAY_NAME": "Forge",
        f"{link}CLIENT_ID": "coder",
        f"{link}CLIENT_SECRET": "a secret of ours",
        f"{link}AUTH_URL": f"{forge}/auth",
        f"{link}TOKEN_URL": f"{forge}/token",
        f"{link}VALIDATE_URL": f"{forge}/me",
    }


@contextlib.contextmanager
def open_empty() -> Iterator[Loopback]:
    """Open a deployment without accounts; `furnish` fills it later."""
    with open_loopback(*OPTIONS, before=with_provider) as server:
        yield server


def furnish(server: Loopback) -> Showcase:
    """Fill the deployment, including a workspace of the template `everything` and users of every role."""
    showcase = fill(server)
    _give_roles(showcase)
    template = server.folder / "everything"
    shutil.copytree(server.folder / "local-process", template)
    (template / "everything.tf").write_text((FOLDER / "everything.tf").read_text())
    assignments = (f"coder_binary={server.folder / 'coder'}", f"data_dir={server.folder / 'workspaces'}")
    variables = [word for assignment in assignments for word in ("--variable", assignment)]
    push = functools.partial(server.coder, "templates", "push", "everything", "-d", str(template), "-y", *variables)
    push()
    server.coder("create", "whole", "--template=everything", "-y", "--use-parameter-defaults")
    push()  # a second version, for updating and promoting
    showcase.api("POST", "/oauth2-provider/apps", {"name": "wiki", "callback_url": "https://wiki.example.com/callback"})
    showcase.api("POST", "/organizations/coder/provisionerkeys", {"name": "builders", "tags": {"os": "linux"}})
    server.coder("ssh", "whole", "--", "true")
    showcase.api("POST", "/tasks/me", {"template_version_id": active(showcase)["id"], **TASK})
    server.coder("ssh", str(showcase.api("GET", f"/tasks/me/{TASK['name']}")["workspace_name"]), "--", "true")
    return showcase


def _give_roles(showcase: Showcase) -> None:
    """Ana owns the deployment, Ben administers its organization, Chloé is an auditor, Dmitri a member."""
    showcase.api("PUT", "/organizations/coder/members/ben/roles", {"roles": ["organization-admin"]})
    showcase.api("PUT", "/users/chloe/roles", {"roles": ["auditor"]})
    template = showcase.api("GET", "/organizations/default/templates/externally-managed-workspace")["id"]
    showcase.api("POST", "/users/dmitri/workspaces", {"template_id": template, "name": "dmitris-machine"})


def session(server: Loopback, who: str) -> str:
    """Return the token of a user of the showcase; "" for signed-out visitors."""
    if who in NO_ACCOUNT:
        return ""
    login: dict[str, Any] = {"email": f"{who}@example.com", "password": PASSWORD}
    return str(server.request("POST", "/api/v2/users/login", login)["session_token"])


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
    "Name of the external workspace whose agent runs."
    built: str = BUILT[0]
    "Name of the workspace on the server's own machine."

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
    showcase = Showcase(server)
    organization = showcase.api("GET", "/organizations")[0]["id"]
    _people(showcase, organization)
    _personal(showcase)
    server.push_external_template()
    server.push_local_template()
    for name in MACHINES:
        server.create_external(name)
    for name in BUILT:
        server.coder("create", name, "--template=local-process", "-y")
    server.coder("stop", BUILT[1], "-y")
    server.coder("favorite", BUILT[0])
    _attach(showcase)
    return showcase


def _people(showcase: Showcase, organization: str) -> None:
    for name, full in PEOPLE:
        body = {"email": f"{name}@example.com", "username": name, "name": full, "password": PASSWORD}
        showcase.api("POST", "/users", {**body, "organization_ids": [organization]})
    group = showcase.api(
        "POST", f"/organizations/{organization}/groups", {"name": "backend", "display_name": "Backend"}
    )
    ids = [showcase.api("GET", f"/users/{name}")["id"] for name in ("ana", "ben", "chloe")]
    showcase.api("PATCH", f"/groups/{group['id']}", {"add_users": ids, "remove_users": []})


def _personal(showcase: Showcase) -> None:
    for name, days, scopes in (("ci", 7, ["coder:templates.build"]), ("backup-script", 2, ["all"])):
        showcase.api("POST", "/users/me/keys/tokens", {"token_name": name, "lifetime": days * DAY_NS, "scopes": scopes})
    npm = {"name": "npm-token", "value": "x", "env_name": "NPM_TOKEN", "description": "Private registry"}
    showcase.api("POST", "/users/me/secrets", npm)
    key = "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw="
    showcase.api(
        "POST", "/users/me/wireguard-clients", {"name": "phone", "public_key": key, "lifetime_seconds": 518_400}
    )
    for title, text in (
        ("Maintenance on Sunday", "Workspaces are stopped from **02:00** to 03:00 UTC. Save your work before."),
        ("New template", "`gpu-training` is ready to use. It has CUDA 12 and 80 GB of memory."),
    ):
        showcase.api("POST", "/notifications/custom", {"content": {"title": title, "message": text}})


def _attach(showcase: Showcase) -> None:
    """Connect the machine's agent and write some log lines."""
    import re

    instructions = showcase.server.coder(
        "external-workspaces", "agent-instructions", showcase.external, "--output=text"
    )
    found = re.search(r'CODER_AGENT_TOKEN="([^"]+)"', instructions)
    assert found is not None, instructions
    showcase.server.start_agent(found[1])
    for line in ("installing tools", "\x1b[32mgit\x1b[0m 2.47", "\x1b[32mnode\x1b[0m 22.11", "ready"):
        showcase.server.write_agent_log(found[1], line)
    limit = time.monotonic() + SOON
    while agent_status(showcase, showcase.external) != "connected":
        assert time.monotonic() < limit, showcase.server.log_ends()
        time.sleep(0.2)


def agent_status(showcase: Showcase, workspace: str) -> str:
    found = showcase.api("GET", f"/users/me/workspace/{workspace}")
    return str(found["latest_build"]["resources"][0]["agents"][0]["status"])


DIST = ROOT / "coder/dashboard/dist"
LIMIT_KB = 200
"""Limit of JavaScript and CSS loaded before the first list, in thousands of bytes of Brotli."""
FIRST_PAGE = "WorkspacesPage"
"""Page whose modules are in the files that every page loads (`coder/dashboard/chunks.ts`)."""
_NAMED = re.compile(r"""(?:src|href)="/(assets/[^"]+\.(?:js|css))\"""")
# `import"./a.js"`, `import{b}from"./a.js"`; `import("./a.js")` waits until somebody needs it.
_IMPORTED = re.compile(r"""(?:\bfrom|\bimport)\s*["']\./([^"']+\.js)["']""")


def shared_files(dist: Path = DIST) -> set[str]:
    """Return the files that every page loads, as paths below `dist`."""
    return _with_imports(dist, set(_NAMED.findall((dist / "index.html").read_text())))


def page_files(page: str, dist: Path = DIST) -> set[str]:
    """Return the files that one page adds: none for the first page, which is among the shared files.

    `page` is the name of its module.
    """
    parts = list(dist.glob(f"assets/{page}-*.js"))
    assert parts or page == FIRST_PAGE, page
    return _with_imports(dist, {f"assets/{part.name}" for part in parts}) - shared_files(dist)


def kilobytes(files: set[str], dist: Path = DIST) -> float:
    """Return the size in thousands of bytes that the server sends over HTTPS.

    Each file is compressed on its own; the smallest ones have no compressed copy (`compressed-copies.ts`).
    """
    sent = (part if (part := dist / f"{name}.br").is_file() else dist / name for name in files)
    return sum(part.stat().st_size for part in sent) / 1000


def _with_imports(dist: Path, files: set[str]) -> set[str]:
    found, waiting = set[str](), set(files)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name.endswith(".js"):
            waiting |= {f"assets/{other}" for other in _IMPORTED.findall((dist / name).read_text())} - found
    return found
