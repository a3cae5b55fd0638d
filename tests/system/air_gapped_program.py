"""A day without the internet, as one process: run in a network namespace by tests/system/test_air_gap.py.

Server with its own database, first user, a template whose build runs Terraform, its agent, a command over SSH, the
dashboard's page with everything it loads. Prints what was done, a word a line.
"""

from __future__ import annotations

import re
import shutil
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.kit.server.server_process import Loopback, open_loopback

PERSON = {"email": "ana@example.com", "username": "ana", "password": "Air-Gap-Password-7"}
BUILT = Path(__file__).resolve().parents[2] / "coder/dashboard/dist/index.html"
LOADED = re.compile(r"""(?:src|href)=["']([^"']+)["']|url\(["']?([^"')]+)["']?\)""")


def pages(server: Loopback) -> int:
    """Fetches the page and all that page and styles name; a name of another host is an error. How many there were."""
    todo, seen = ["/"], set[str]()
    while todo:
        path = todo.pop()
        if path in seen or path.startswith(("data:", "#")):
            continue
        seen.add(path)
        assert not re.match(r"(https?:)?//", path), f"{path} is not on this server"
        try:
            with urllib.request.urlopen(f"{server.url}{path}", timeout=60) as answer:
                kind, body = answer.headers.get_content_type(), answer.read()
        except OSError as error:
            raise AssertionError(f"{path}: {error}") from None
        if kind in {"text/html", "text/css"}:
            found = [first or second for first, second in LOADED.findall(body.decode())]
            todo += [urljoin(path, name) for name in found]
    return len(seen)


def main() -> None:
    with open_loopback() as server:
        server.request("POST", "/api/v2/users/first", {**PERSON, "name": "", "trial": False})
        server.sign_in(PERSON["email"], PERSON["password"])
        print("server", flush=True)
        assert pages(server) > 1 or not BUILT.exists()
        print("dashboard", flush=True)
        server.push_local_template()
        server.coder("create", "dev", "--template=local-process", "-y")
        print("build", flush=True)
        assert server.coder("ssh", "dev", "--", "echo", "there").strip() == "there"
        print("agent", flush=True)
        server.coder("netcheck")
        server.coder(
            "server", "backup", "-o", str(server.folder / "b"), "--global-config", server.env("srv")["CODER_CONFIG_DIR"]
        )
        print("backup", flush=True)
        server.coder("delete", "dev", "-y")
        print("deleted", flush=True)


if __name__ == "__main__":
    assert shutil.which("terraform"), "terraform is needed"
    main()
