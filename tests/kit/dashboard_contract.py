"""Every page of the dashboard, as whom it is visited, and the deployment that has something on each of them.

`tests/data/dashboard_pages/contract.tsv` is the one list: what stands on a page, what axe-core says of it, whether it
fits a phone, pictures and measurements all take their pages from there.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kit.loopback import ROOT, Loopback, open_loopback
from tests.kit.showcase import PASSWORD, Showcase, fill

FOLDER = ROOT / "tests/data/dashboard_pages"
NO_ACCOUNT = ("first", "nobody")
"""Who is signed out: before there is any account, and after."""
OPTIONS = ("--wireguard-address", "127.0.0.1:0", "--agent-stats-refresh-interval", "5s", "--experiments=oauth2")
TASK = {"name": "mend-it", "display_name": "Mend it", "input": "Mend the build."}


@dataclass(frozen=True)
class Visit:
    """One page as one person sees it, after something was opened on it."""

    who: str
    page: str
    opened: str

    def __str__(self) -> str:
        return f"{self.who} {self.page}" + ("" if self.opened == "-" else f" {self.opened}")

    @property
    def steps(self) -> list[tuple[str, str]]:
        """What is pressed, one after the other: (kind, name)."""
        parts = [] if self.opened == "-" else self.opened.split(" > ")
        return [(kind, name) for kind, _, name in (part.partition(":") for part in parts)]


def _read() -> dict[Visit, list[tuple[str, str]]]:
    found: dict[Visit, list[tuple[str, str]]] = {}
    for line in (FOLDER / "contract.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            who, page, opened, kind, name = line.split("\t")
            found.setdefault(Visit(who, page, opened), []).append((kind, name))
    return found


CONTRACT = _read()
"""What stands where: (kind, name) of each visit."""
PAGES = tuple(visit for visit in CONTRACT if not visit.steps)
"""Each page once for everybody whom the table names, as it stands when nothing was pressed."""


@dataclass(frozen=True)
class Names:
    """What addresses and names of the table call `{so}`, in one deployment."""

    version: str
    app: str

    def filled(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(getattr(self, found[1])), text)


def names(made: Showcase) -> Names:
    return Names(active(made)["name"], made.api("GET", "/oauth2-provider/apps")[0]["id"])


def active(made: Showcase) -> dict[str, Any]:
    """The version workspaces of the template with everything are made with."""
    version = made.api("GET", "/organizations/default/templates/everything")["active_version_id"]
    found: dict[str, Any] = made.api("GET", f"/templateversions/{version}")
    return found


def with_provider(server: Loopback) -> None:
    """An account elsewhere that people could link: nothing answers there, and nothing is asked before somebody does.

    Nor does anything take the mail; that some is set up is enough for the form of those who forgot their password.
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
    """Where nobody has an account yet; `furnish` is what comes next."""
    with open_loopback(*OPTIONS, before=with_provider) as found:
        yield found


def furnish(server: Loopback) -> Showcase:
    """Lived in, with one workspace of a template that has everything, and with people of every role."""
    made = fill(server)
    _give_roles(made)
    template = server.folder / "everything"
    shutil.copytree(server.folder / "local-process", template)
    (template / "everything.tf").write_text((FOLDER / "everything.tf").read_text())
    given = (f"coder_binary={server.folder / 'coder'}", f"data_dir={server.folder / 'workspaces'}")
    variables = [word for one in given for word in ("--variable", one)]
    push = functools.partial(server.coder, "templates", "push", "everything", "-d", str(template), "-y", *variables)
    push()
    server.coder("create", "whole", "--template=everything", "-y", "--use-parameter-defaults")
    push()  # a second version: there is something to update to, and to promote
    made.api("POST", "/oauth2-provider/apps", {"name": "wiki", "callback_url": "https://wiki.example.com/callback"})
    made.api("POST", "/organizations/coder/provisionerkeys", {"name": "builders", "tags": {"os": "linux"}})
    server.coder("ssh", "whole", "--", "true")
    made.api("POST", "/tasks/me", {"template_version_id": active(made)["id"], **TASK})
    server.coder("ssh", str(made.api("GET", f"/tasks/me/{TASK['name']}")["workspace_name"]), "--", "true")
    return made


def _give_roles(made: Showcase) -> None:
    """Ana owns the deployment, Ben administers its organization, Chloé is an auditor, Dmitri a member."""
    made.api("PUT", "/organizations/coder/members/ben/roles", {"roles": ["organization-admin"]})
    made.api("PUT", "/users/chloe/roles", {"roles": ["auditor"]})
    template = made.api("GET", "/organizations/default/templates/externally-managed-workspace")["id"]
    made.api("POST", "/users/dmitri/workspaces", {"template_id": template, "name": "dmitris-machine"})


def session(server: Loopback, who: str) -> str:
    """The token of a person of the showcase; "" for who is signed out."""
    if who in NO_ACCOUNT:
        return ""
    login: dict[str, Any] = {"email": f"{who}@example.com", "password": PASSWORD}
    return str(server.request("POST", "/api/v2/users/login", login)["session_token"])
