"""Untrusted input: never a 500, always a message."""

from __future__ import annotations

from tests.kit.api.api_description import check
from tests.kit.server.server_in_process import running_coderd

BODIES = [
    ("POST", "/api/v2/users/login", b'{"email":"a\\u0000@b.c","password":"x"}'),
    ("POST", "/api/v2/users/login", b"\xff\xfe{"),
    ("POST", "/api/v2/users/login", b"[" * 100_000),
    ("POST", "/api/v2/users/login", b'{"email":' * 50_000),
    ("POST", "/api/v2/users/login", b'{"email":{"a":1}}'),
    ("POST", "/api/v2/users/login", b"null"),
    ("POST", "/api/v2/users/login", b'"text"'),
    ("POST", "/api/v2/users", b'{"organization_ids":["x"]}'),
    ("POST", "/api/v2/users", b'{"username":"\\ud800"}'),
    ("POST", "/api/v2/authcheck", b'{"checks":[1]}'),
    ("POST", "/api/v2/users/me/keys/tokens", b'{"lifetime":1e300}'),
    ("POST", "/api/v2/users/me/keys/tokens", b'{"lifetime":%d}' % 10**30),
    ("POST", "/api/v2/users/me/keys/tokens", b'{"token_name":"a\\u0000"}'),
    ("PUT", "/api/v2/users/me/profile", b'{"username":"admin","name":"x\\u0000y"}'),
    ("PUT", "/api/v2/users/me/roles", b'{"roles":{}}'),
    ("PUT", "/api/v2/users/me/appearance", b'{"theme_preference":1}'),
    ("GET", "/api/v2/users?q=search:%00", b""),
    ("GET", "/api/v2/users?q=github_com_user_id:99999999999999999999999", b""),
    ("GET", "/api/v2/users?limit=99999999999", b""),
    ("GET", "/api/v2/files/nope", b""),
]


async def test_bad_bodies_are_explained() -> None:
    async with running_coderd(first_user=True) as world:
        for method, path, body in BODIES:
            answer = await world.request(method, path, content=body)
            too_large = len(body) > 64 << 10 and path == "/api/v2/users/login"
            assert answer.status_code == (413 if too_large else 400), (path, body[:60], answer.status_code, answer.text)
            check("Response", answer.json())


async def test_strange_paths_and_tokens() -> None:
    async with running_coderd(first_user=True) as world:
        for path in ("/api/v2/users/%ff%fe", "/api/v2/users/" + "a" * 5000, "/api/v2/users/..%2f..%2fetc"):
            assert (await world.get(path)).status_code == 404, path
        for path in ("/%ff%fe", "/../../../etc/passwd", "/a%00b"):
            answer = await world.get(path)
            assert answer.status_code == 200, path
            assert "<html" in answer.text, path
        assert (await world.get("/assets/..%2f..%2f..%2fpyproject.toml")).status_code == 404
        for token in ("x", "a-b-c", world.token[:-1], world.token + "A", "A" * 10 + "-" + "B" * 22, "-" * 33):
            answer = await world.get("/api/v2/users/me", token=token)
            assert answer.status_code == 401, token


STRANGE_NAMES = ["' OR 1=1 --", "\\%", "\\_", '";DROP TABLE users;--', "\\"]


async def test_search_is_data() -> None:
    async with running_coderd(first_user=True) as world:
        for name in STRANGE_NAMES:
            answer = await world.get("/api/v2/users", params={"q": f'search:"{name}"'})
            if answer.status_code == 200:
                assert answer.json()["users"] == [], name
            else:
                assert answer.status_code == 400, name
