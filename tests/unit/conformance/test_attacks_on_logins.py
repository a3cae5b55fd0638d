"""Attacks by and through other programs: OAuth2 clients, identity providers, SCIM, workspace proxies, push services.

Each row is one request and its refusing statuses. Keys of one kind on routes for another are in `test_attacks.py`,
applications in `test_attacks_on_applications.py`.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import httpx
import pytest

from coder.base.secret import Secret
from coder.coderd.store.site.site_settings import PREBUILDS_USER_ID
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.api.security_probes import count_work
from tests.kit.server.server_in_process import FIRST_USER, World, running_coderd
from tests.kit.server.workspace_proxy import new_proxy
from tests.unit.coderd.services.login.test_oauth2_provider import CALLBACK, VERIFIER, Client, client

_FRESH = re.compile(r"[A-Za-z0-9_-]{22,}={0,2}")
REDIRECTS = (
    CALLBACK + "/",
    CALLBACK + "/../evil",
    CALLBACK + "?x=1",
    CALLBACK + "#x",
    CALLBACK.upper(),
    CALLBACK + "%2e",
    CALLBACK.replace("localhost", "127.0.0.1"),
    CALLBACK.replace("http", "https"),
    CALLBACK.replace("19190", "19191"),
    CALLBACK.replace("localhost", "localhost@evil.test"),
    CALLBACK.replace("localhost", "localhost.evil.test"),
    CALLBACK.replace("localhost:19190", "localhost:19190\\@evil.test"),
    "//localhost:19190/cb",
    "localhost:19190/cb",
    "https://evil.test",
    "javascript:alert(1)//localhost:19190/cb",
    "data:text/html,x",
    " " + CALLBACK,
    CALLBACK + " ",
    CALLBACK + "\r\nX: y",
    CALLBACK + "\x00",
    "http:localhost:19190/cb",
    "http:///cb",
    "/cb",
    "cb",
    "http://localhost:19190/CB",
    "http://localhost:19190//cb",
    "http://localhost:019190/cb",
)
"""Redirect URIs similar to the registered one."""


async def test_code_requires_registered_redirect() -> None:
    wrong = []
    async with client() as it:
        for uri in REDIRECTS:
            for method in ("GET", "POST"):
                response = await it.world.request(method, it.query(redirect_uri=uri), token=it.user_token)
                there = response.headers.get("location", "")
                if response.status_code != 400 or "code=" in there or urlsplit(there).netloc:
                    wrong.append(f"{method} {uri!r}: {response.status_code} {there}")
        twice = it.query() + "&" + urlencode({"redirect_uri": "https://evil.test"})
        response = await it.world.post(twice, token=it.user_token)
        if urlsplit(response.headers.get("location", "")).netloc not in {"", urlsplit(CALLBACK).netloc}:
            wrong.append(f"two addresses: {response.headers}")
        for state in ("\r\nSet-Cookie: a=b", "&code=mine", "#x", "\x00", "x" * 5000, "%0d%0aX: y"):
            response = await it.world.post(it.query(state=state), token=it.user_token)
            query = parse_qs(urlsplit(response.headers.get("location", "")).query)
            if response.status_code == 302 and (len(query["code"]) != 1 or query["state"] != [state]):
                wrong.append(f"state {state[:20]!r}: {response.headers['location'][:200]}")
            if "a" in response.cookies or "x" in response.headers:
                wrong.append(f"state {state[:20]!r}: a header of its own")
        for more in (
            {"response_type": "token"},
            {"response_type": "code token"},
            {"response_type": ""},
            {"client_id": ""},
            {"client_id": str(uuid4())},
            {"client_id": "' OR 1=1 --"},
            {"code_challenge_method": "s256"},
            {"code_challenge": "é" * 43},
            {"code_challenge": "a" * 44},
            {"code_challenge": "a" * 42},
        ):
            response = await it.world.post(it.query(**more), token=it.user_token)
            if response.status_code < 400:
                wrong.append(f"{more}: {response.status_code}")
    assert not wrong, "\n".join(wrong)


async def test_client_cannot_use_foreign_tokens() -> None:
    """Codes, refresh and access tokens of one application at the token endpoint, sent by another one, and without the
    secret.
    """
    async with client() as it:
        created = await it.world.post("/api/v2/oauth2-provider/apps", {"name": "other", "callback_url": CALLBACK})
        secret = await it.world.post(f"/api/v2/oauth2-provider/apps/{created.json()['id']}/secrets")
        other = Client(it.world, created.json()["id"], secret.json()["client_secret_full"], it.user_token)
        mine: Any = (await it.exchange(await it.code())).json()
        access, refresh = mine["access_token"], mine["refresh_token"]
        basic = base64.b64encode(f"{other.app_id}:{other.secret}".encode()).decode()
        asked: list[tuple[Client, dict[str, str], dict[str, str]]] = [
            (other, {"grant_type": "refresh_token", "refresh_token": refresh}, {}),
            (other, {"grant_type": "refresh_token", "refresh_token": access}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": access}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh, "client_secret": ""}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh, "client_secret": other.secret}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": ""}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh[:-1]}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh + "x"}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": ""}, {}),
            (it, {"grant_type": "refresh_token", "code": refresh}, {}),
            (it, {"grant_type": "authorization_code", "code": refresh}, {}),
            (it, {"grant_type": "authorization_code", "code": access}, {}),
            (it, {"grant_type": "client_credentials"}, {}),
            (it, {"grant_type": "password", "username": "admin"}, {}),
            (it, {"grant_type": "implicit"}, {}),
            (it, {"grant_type": ""}, {}),
            (it, {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": refresh}, {}),
            (it, {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": access}, {}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh}, {"Authorization": f"Basic {basic}"}),
            (it, {"grant_type": "refresh_token", "refresh_token": refresh}, {"Authorization": "Basic !!!"}),
        ]
        wrong = []
        for who, fields, headers in asked:
            form = {"client_id": who.app_id, "client_secret": who.secret, **fields}
            response = await it.world.request("POST", "/oauth2/tokens", data=form, headers=headers, token="")
            if response.status_code not in {400, 401, 403} or "access_token" in response.json():
                wrong.append(f"{fields} {headers}: {response.status_code} {response.text[:200]}")
        for form in (
            {"token": access, "client_id": other.app_id, "client_secret": other.secret},
            {"token": refresh, "client_id": other.app_id, "client_secret": other.secret},
            {"token": access, "client_id": it.app_id, "client_secret": other.secret},
            {"token": access},
            {"token": it.user_token, "client_id": it.app_id, "client_secret": it.secret},
        ):
            await it.world.request("POST", "/oauth2/revoke", data=form, token="")
        assert await it.me(access) == 200 and await it.me(it.user_token) == 200, "revoked by another client"
        # A code works once, for one client that knows the verifier.
        code = await it.code()
        for verifier in (VERIFIER[:-1], VERIFIER + "v", "", "w" * 60):
            refused = await it.exchange(await it.code(), code_verifier=verifier)
            assert refused.status_code == 400, verifier
        assert (await other.exchange(code)).status_code == 400
    assert not wrong, "\n".join(wrong)


async def test_dangerous_registrations_are_refused() -> None:
    bad: list[dict[str, Any]] = [
        *[
            {"redirect_uris": [uri]}
            for uri in (
                "javascript:alert(1)",
                "data:text/html,x",
                "vbscript:x",
                "file:///etc/passwd",
                "http://evil.test/cb",
                "https://x.test/#a",
                "//x.test",
                "/cb",
                "",
                "https://",
                "http://localhost.evil.test/cb",
                "about:blank",
                "blob:https://x.test/y",
                "JaVaScRiPt:alert(1)",
                " javascript:alert(1)",
                "http://[::1",
                "https://x.test/\r\n",
            )
        ],
        {},
        {"redirect_uris": []},
        {"redirect_uris": "https://x.test"},
        {"redirect_uris": [CALLBACK, None]},
        {"redirect_uris": [CALLBACK], "grant_types": ["password"]},
        {"redirect_uris": [CALLBACK], "grant_types": ["client_credentials"]},
        {"redirect_uris": [CALLBACK], "response_types": ["token"]},
        {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt"},
    ]
    async with client() as it:
        await it.world.put("/api/v2/oauth2-provider/settings", {"dynamic_client_registration_enabled": True})
        wrong = []
        for body in bad:
            response = await it.world.post("/oauth2/register", body, token="")
            if response.status_code != 400:
                wrong.append(f"{body}: {response.status_code} {response.text[:200]}")
        mine = (await it.world.post("/oauth2/register", {"redirect_uris": [CALLBACK]}, token="")).json()
        theirs = (await it.world.post("/oauth2/register", {"redirect_uris": [CALLBACK]}, token="")).json()
        path = f"/oauth2/clients/{theirs['client_id']}"
        for secret in (mine["registration_access_token"], mine["client_secret"], it.secret, it.world.token, "x"):
            for method in ("GET", "PUT", "DELETE"):
                credential = {"Authorization": f"Bearer {secret}"}
                body = {"redirect_uris": ["https://evil.test"]}
                response = await it.world.request(method, path, headers=credential, json=body, token="")
                if response.status_code not in {400, 401, 403, 404}:
                    wrong.append(f"{method} by {secret[:6]}: {response.status_code}")
    assert not wrong, "\n".join(wrong)


async def test_login_redirects_stay_local() -> None:
    """Redirects of a login, a page of the API or an application, with addresses chosen by the attacker."""
    elsewhere = (
        "https://evil.test",
        "//evil.test",
        "/\\evil.test",
        "\\\\evil.test",
        "https:evil.test",
        "/%2fevil.test",
        "/\t/evil.test",
        "http://localhost@evil.test",
        "javascript:alert(1)",
        "/x\r\nLocation: https://evil.test",
        "///evil.test",
        "////evil.test/%2f..",
        "/..//evil.test",
        "?redirect=https://evil.test",
        "https://[evil.test",
    )
    wrong = []
    async with running_coderd(first_user=True, wildcard_access_url="*.apps.test", experiments=("oauth2",)) as world:
        own = {"", urlsplit(world.url).netloc}
        for there in elsewhere:
            for path in (
                "/api/v2/users/oidc/callback",
                "/api/v2/users/oauth2/github/callback",
                "/external-auth/x/callback",
                "/gitauth/x/callback",
                "/api/v2/applications/auth-redirect",
                "/oauth2/authorize",
                "/login",
                "/logout",
                "/cli-auth",
                "/install.sh",
            ):
                query = urlencode({"redirect": there, "redirect_uri": there, "return_to": there, "state": there})
                response = await world.get(f"{path}?{query}")
                if urlsplit(response.headers.get("location", "")).netloc not in own:
                    wrong.append(f"{path} {there!r}: {response.headers['location']}")
            if there.isprintable() and there.startswith("/"):
                raw = httpx.URL(world.url).copy_with(raw_path=there.encode())
                response = await world.client.send(httpx.Request("GET", raw))
                if urlsplit(response.headers.get("location", "")).netloc not in own:
                    wrong.append(f"the path {there!r}: {response.headers['location']}")
    assert not wrong, "\n".join(wrong)


_USER = {"userName": "eve", "emails": [{"value": "eve@b.c", "primary": True}], "active": True}


async def test_scim_serves_its_provider_alone() -> None:
    key = "scim-key-of-the-provider"
    wrong = []
    async with running_coderd(first_user=True, scim_auth_header=Secret(key)) as world:
        _, admin = await world.member("people", ["user-admin"])
        credentials: list[dict[str, str]] = [
            {},
            {"Authorization": ""},
            {"Authorization": "Bearer"},
            {"Authorization": key[:-1]},
            {"Authorization": key + "x"},
            {"Authorization": key.upper()},
            {"Authorization": f"Bearer {key[:-1]}"},
            {"Authorization": f"Basic {key}"},
            {"X-Authorization": key},
            {"Authorization": f"Basic {base64.b64encode(f'scim:{key}'.encode()).decode()}"},
            {"Authorization": f"Bearer {world.token}"},
            {"Coder-Session-Token": world.token},
            {"Coder-Session-Token": admin},
            {"Cookie": f"coder_session_token={world.token}"},
            {"Coder-Session-Token": key},
            {"Authorization": f"bearer {key}x"},
            {"Proxy-Authorization": key},
        ]
        for headers in credentials:
            for method, path, body in (
                ("GET", "/scim/v2/Users", None),
                ("POST", "/scim/v2/Users", _USER),
                ("PATCH", f"/scim/v2/Users/{world.user_id}", {"active": False}),
                ("PUT", f"/scim/v2/Users/{world.user_id}", {**_USER, "active": False}),
                ("GET", f"/scim/v2/Users/{world.user_id}", None),
                ("DELETE", f"/scim/v2/Users/{world.user_id}", None),
                ("GET", "/scim/v2/Schemas", None),
                ("GET", "/scim/v2/ResourceTypes/User", None),
                ("GET", "/scim/v2/Groups", None),
                ("POST", "/scim/v2/Groups", {"displayName": "g"}),
                ("POST", "/scim/v2/Bulk", {}),
                ("GET", "/scim/v2/Me", None),
                ("DELETE", "/scim/v2/nope", None),
            ):
                response = await world.request(method, path, json=body, headers=headers, token="")
                if response.status_code != 401:
                    wrong.append(f"{headers} {method} {path}: {response.status_code}")
        good = {"Authorization": f"Bearer {key}"}
        for method, ident, document in (
            ("PATCH", str(PREBUILDS_USER_ID), {"active": False}),
            ("PUT", str(PREBUILDS_USER_ID), _USER),
            ("PATCH", world.user_id, {"active": False}),
            ("PUT", world.user_id, {**_USER, "active": False}),
            ("DELETE", str(PREBUILDS_USER_ID), None),
            ("DELETE", world.user_id, None),
            ("PATCH", str(uuid4()), {"active": False}),
            ("PATCH", "admin", {"active": False}),
            ("PATCH", "../users/admin", {"active": False}),
            ("PATCH", f"{world.user_id}/roles", {"roles": ["owner"]}),
            ("PATCH", world.user_id, {"Operations": [{"op": "replace", "path": "roles", "value": ["owner"]}]}),
            ("PATCH", world.user_id, {"Operations": [{"op": "replace", "value": {"active": False}}]}),
            ("PATCH", world.user_id, {"Operations": [{"op": "remove", "path": "active"}]}),
        ):
            path = f"/scim/v2/Users/{ident}"
            response = await world.request(method, path, json=document, headers=good, token="")
            if response.status_code >= 500:
                wrong.append(f"{method} {ident} {document}: {response.status_code} {response.text[:200]}")
        me = (await world.get("/api/v2/users/me")).json()
        assert (me["status"], [role["name"] for role in me["roles"]]) == ("active", ["owner"])
        for name in ("admin", "a\x00b", "<script>", "x" * 500, "", "../x", "eve\r\nX: y", "prebuilds"):
            document = {**_USER, "userName": name, "roles": ["owner"], "groups": ["owner"], "organization_ids": ["x"]}
            document["emails"] = [{"value": f"{uuid4().hex}@b.c", "primary": True}]
            response = await world.request("POST", "/scim/v2/Users", json=document, headers=good, token="")
            if response.status_code >= 500:
                wrong.append(f"{name[:20]!r}: {response.status_code} {response.text[:200]}")
        users = (await world.get("/api/v2/users?q=role:owner")).json()["users"]
        assert [user["username"] for user in users] == ["admin"]
    assert not wrong, "\n".join(wrong)


async def test_proxy_has_visitors_rights() -> None:
    """A workspace proxy requests tickets with its visitor's token and gets the visitor's rights, no more."""
    async with workspace_world(wildcard_access_url="*.apps.test") as it:
        world, agent = it.world, str(it.agent_id)
        headers = {"Coder-External-Proxy-Token": await new_proxy(world)}
        _, bob = await world.member("bob")
        narrow = await world.post("/api/v2/users/me/keys/tokens", {"scopes": ["coder:application_connect"]})
        other = await world.post("/api/v2/users/me/keys/tokens", {"scopes": ["template:read"]})
        request = {
            "access_method": "path",
            "base_path": "/@admin/dev/apps/web/",
            "app_prefix": "",
            "username_or_id": "admin",
            "workspace_and_agent": "",
            "workspace_name_or_id": "dev",
            "agent_name_or_id": "",
            "app_slug_or_port": "web",
        }
        terminal = {"access_method": "terminal", "agent_name_or_id": agent, "app_slug_or_port": ""}
        port = {"access_method": "subdomain", "base_path": "/", "agent_name_or_id": "main", "app_slug_or_port": "8080"}
        asked: list[tuple[str, dict[str, str]]] = [
            *[
                (token, more)
                for token in ("", bob, "x" * 33, it.token, headers["Coder-External-Proxy-Token"])
                for more in ({}, terminal, port, {"access_method": "subdomain", "base_path": "/"})
            ],
            (narrow.json()["key"], terminal),
            (other.json()["key"], {}),
            (other.json()["key"], port),
            (other.json()["key"], terminal),
            (bob, {**port, "workspace_name_or_id": it.workspace["id"]}),
            (bob, {**port, "username_or_id": "me"}),
            (bob, {**port, "username_or_id": "bob"}),
            (bob, {**port, "agent_name_or_id": agent}),
            *[(world.token, {**port, "app_slug_or_port": slug}) for slug in ("1", "2", "4", "0", "-1", "65536", "")],
            *[(world.token, {"access_method": method}) for method in ("", "ssh", "PATH", "terminal ")],
            (world.token, {**terminal, "agent_name_or_id": "main"}),
            (world.token, {**terminal, "agent_name_or_id": ""}),
            (world.token, {**terminal, "agent_name_or_id": str(uuid4())}),
        ]
        wrong = []
        for token, more in asked:
            body = {
                "app_request": {**request, **more},
                "session_token": token,
                "app_path": "/",
                "app_query": "",
                "path_app_base_url": "https://proxy.test",
                "app_hostname": "*.proxy.test",
            }
            response = await world.request(
                "POST", "/api/v2/workspaceproxies/me/issue-signed-app-token", json=body, headers=headers, token=""
            )
            if response.status_code < 400 and "signed_token" in response.text:
                wrong.append(f"{token[:5]} {more}: {response.status_code} {response.text[:100]}")
            if response.status_code >= 500 and response.status_code != 502:
                wrong.append(f"{token[:5]} {more}: {response.status_code} {response.text[:200]}")
    assert not wrong, "\n".join(wrong)


_WRONG_PASSWORD, _APP = "NotTheRight123!", "/oauth2/tokens"
SAME: tuple[tuple[str, str, str, dict[str, str], dict[str, str]], ...] = (
    # (objects for {}, method, path, JSON or form that any client may send, headers)
    *[
        (kind, "POST", "/api/v2/users/login", {"email": mail, "password": _WRONG_PASSWORD}, {})
        for kind in ("password", "oidc", "suspended", "deleted", "owner")
        for mail in ("{}@b.c", "{}@B.C", " {}@b.c", "{}@b.c\x00")
    ],
    *[
        (kind, "POST", "/api/v2/users/otp/request", {"email": "{}@b.c"}, {})
        for kind in ("password", "oidc", "suspended", "deleted")
    ],
    *[
        (
            kind,
            "POST",
            "/api/v2/users/otp/change-password",
            {"email": "{}@b.c", "password": password, "one_time_passcode": code},
            {},
        )
        for kind in ("password", "oidc", "suspended", "deleted")
        for password, code in ((_WRONG_PASSWORD, "x"), ("short", "x"), (FIRST_USER["password"], ""))
    ],
    *[
        (kind, method, f"/@{{}}/{workspace}/apps/{app}/", {}, {})
        for kind in ("password", "owner", "deleted")
        for method in ("GET", "POST")
        for workspace, app in (("dev", "web"), ("dev.main", "8080"), ("nothing", "web"))
    ],
    *[
        (kind, "GET", path, {}, {"Host": host})
        for kind in ("password", "owner", "deleted")
        for path in ("/", "/x?y=z")
        for host in ("web--dev--{}.apps.test", "8080--main--dev--{}.apps.test")
    ],
    *[
        (kind, "GET", path, {}, {})
        for kind in ("password", "owner", "deleted")
        for path in (
            "/api/v2/users/{}",
            "/api/v2/users/{}/gitsshkey",
            "/api/v2/users/{}/workspace/dev",
            "/@{}",
            "/@{}/dev",
            "/api/v2/users/{}/organizations",
        )
    ],
    *[
        ("application", method, "/oauth2/authorize?client_id={}&response_type=code", {}, {})
        for method in ("GET", "POST")
    ],
    *[("application", method, "/oauth2/clients/{}", {}, {"Authorization": "Bearer x"}) for method in ("GET", "DELETE")],
    *[
        (
            "organization",
            "GET",
            f"/api/v2/organizations/{{}}/provisionerdaemons/serve?provisioner=echo{more}",
            {},
            headers,
        )
        for more in ("", "&tag=scope%3Duser")
        for headers in ({}, {"Coder-Provisioner-Daemon-Key": "x"})
    ],
    *[
        ("workspace", method, path, {}, {})
        for method, path in (
            ("GET", "/api/v2/workspaces/{}"),
            ("GET", "/api/v2/workspaces/{}/watch-ws"),
            ("POST", "/api/v2/workspaces/{}/usage"),
        )
    ],
)
"""Requests without authentication that are answered alike whether the object exists or not. Token requests of OAuth2
clients are none of them: an identifier of a client is no secret (RFC 6749, section 2.2)."""


async def test_existence_is_not_revealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the response nor by the work done for it."""
    wrong = []
    settings: dict[str, Any] = {"experiments": ("oauth2",), "scim_auth_header": Secret("scim")}
    async with workspace_world(wildcard_access_url="*.apps.test", **settings) as it:
        world = it.world
        for name in ("quixote", "fenwick", "xanthippe"):
            await world.member(name)
        oidc = {"userName": "zebulon", "emails": [{"value": "zebulon@b.c", "primary": True}], "active": True}
        for method, path, body, headers in (
            ("POST", "/scim/v2/Users", oidc, {"Authorization": "scim"}),
            ("PUT", "/api/v2/users/fenwick/status/suspend", None, {}),
            ("DELETE", "/api/v2/users/xanthippe", None, {}),
        ):
            assert (await world.request(method, path, json=body, headers=headers)).status_code == 200
        app = (await world.post("/api/v2/oauth2-provider/apps", {"name": "app", "callback_url": CALLBACK})).json()["id"]
        known = {
            "password": "quixote",
            "oidc": "zebulon",
            "suspended": "fenwick",
            "deleted": "xanthippe",
            "owner": "admin",
            "application": app,
            "organization": "default",
            "workspace": it.workspace["id"],
        }
        unknown = {"application": str(uuid4()), "workspace": str(uuid4())}
        work, hashed = count_work(world.ctx.db, monkeypatch), 0
        for kind, method, path, sent, headers in SAME:
            work.clear()
            there, done = await _response_of(world, known[kind], method, path, sent, headers), Counter(work)
            work.clear()
            nowhere = await _response_of(world, unknown.get(kind, "missing"), method, path, sent, headers)
            hashed += work["password hashes"]
            if there != nowhere:
                wrong.append(f"{kind} {method} {path} {sent} {headers}: {there}\n  unknown: {nowhere}")
            if done != work:
                wrong.append(f"{kind} {method} {path} {sent} {headers}: {done - work}\n  unknown: {work - done}")
        assert hashed >= 10, "an unknown user also has a password to compare"
    assert len(SAME) > 90
    assert not wrong, "\n".join(wrong)


async def _response_of(
    world: World, name: str, method: str, path: str, body: dict[str, str], headers: dict[str, str]
) -> tuple[Any, ...]:
    """Return the whole response, without the name itself and values that are new in each response."""
    sent = {key: value.replace("{}", name) for key, value in body.items()}
    more: dict[str, Any] = {} if not sent else {"data": sent} if path == _APP else {"json": sent}
    named = {key: value.replace("{}", name) for key, value in headers.items()}
    world.client.cookies.clear()
    response = await world.request(method, path.replace("{}", name), headers=named, token="", **more)
    new = {"date", "x-coder-request-id", "content-length", "etag", "server-timing"}
    lines = {key: value.replace(name, "<asked>") for key, value in response.headers.items() if key not in new}
    text = _FRESH.sub("<fresh>", response.text.replace(name, "<asked>"))
    return response.status_code, text, sorted((key, _FRESH.sub("<fresh>", value)) for key, value in lines.items())


_INSIDE = (
    "http://push.test/x",
    "https://127.0.0.1/x",
    "https://localhost/x",
    "https://[::1]/x",
    "https://10.0.0.1/x",
    "https://169.254.169.254/latest/meta-data",
    "https://[::ffff:127.0.0.1]/x",
    "https://2130706433/x",
    "https://0x7f000001/x",
    "https://127.1/x",
    "https://0/x",
    "https://[64:ff9b::7f00:1]/x",
    "https://[fe80::1]/x",
    "https://user@push.test/x",
    "https://push.test:0/x",
    "file:///etc/passwd",
    "gopher://127.0.0.1/x",
    "",
    "x",
    "https://[fd00::1]/x",
    "https://100.64.0.1/x",
    "https://192.168.0.1:8443/x",
    "https://224.0.0.1/x",
    "https://0.0.0.0/x",
    "https://[2002:7f00:1::]/x",
    "https://[::]/x",
)
"""Internal addresses that the server must not connect to."""


async def test_push_service_must_be_public() -> None:
    keys = {"auth_key": "AAAAAAAAAAAAAAAAAAAAAA", "p256dh_key": _point()}
    wrong = []
    async with running_coderd(first_user=True, experiments=("web-push",)) as world:
        _, member = await world.member("bob")
        for endpoint in _INSIDE:
            body = {"endpoint": endpoint, **keys}
            response = await world.post("/api/v2/users/me/webpush/subscription", body, token=member)
            if response.status_code not in {400, 403, 404}:
                wrong.append(f"{endpoint}: {response.status_code} {response.text[:200]}")
        assert await _subscriptions(world) == 0
    assert not wrong, "\n".join(wrong)


def _point() -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    from coder.domain.notifications import web_push

    return web_push.base64url(web_push.public_point(ec.generate_private_key(ec.SECP256R1())))


async def _subscriptions(world: World) -> int:
    from sqlalchemy import text

    async def count(tx: Any) -> int:
        return int((await tx.execute(text("SELECT count(*) FROM webpush_subscriptions"))).scalar_one())

    return await world.ctx.db.read(count)
