"""`coder login` sends secrets to a Coder only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.programs.command_line import run_cli
from tests.kit.server.server_in_process import running_coderd
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply

SECRET = "TopSecret1!"
WITH_USER = [
    "--first-user-username=a",
    "--first-user-email=a@b.c",
    f"--first-user-password={SECRET}",
    "--first-user-trial=false",
]
WITH_TOKEN = ["--token", SECRET]
STRANGERS = [
    reply("<h1>not found</h1>", status="404 Not Found", kind="text/html", is_coder=False),
    reply('{"message":"The initial user has not been created!"}', status="404 Not Found", is_coder=False),
    reply('{"message":"The initial user has already been created!"}', is_coder=False),
    reply("<h1>welcome</h1>", kind="text/html", is_coder=False),
    reply("", status="404 Not Found", is_coder=False),
]


@pytest.mark.parametrize("words", [WITH_USER, WITH_TOKEN], ids=["password", "token"])
@pytest.mark.parametrize("answer", STRANGERS)
async def test_other_servers_get_no_secret(tmp_path: Path, answer: bytes, words: list[str]) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: answer
        done = await run_cli(["login", server.url, *words], home=tmp_path)
        assert done.code == 1 and "missing build version header, not a coder instance" in done.stderr
        assert server.asked == [("GET", "/api/v2/users/first")] and not server.bodies
        assert not (tmp_path / ".config/coderv2/url").exists()


@pytest.mark.parametrize("tail", ["", "/", "/workspaces", "/some/path/", "/workspaces?filter=owner:me#top"])
async def test_page_address_is_accepted(tmp_path: Path, tail: str) -> None:
    async with running_coderd(first_user=True) as world:
        words = ["login", world.url + tail, "--token", world.token, "--use-token-as-session"]
        done = await run_cli(words, home=tmp_path)
        assert done.code == 0, done.stderr
        assert (tmp_path / ".config/coderv2/url").read_text() == world.url
        env = {"CODER_URL": world.url + tail, "CODER_SESSION_TOKEN": world.token}
        done = await run_cli(["whoami"], home=tmp_path, env=env)
        assert done.code == 0 and world.url in done.stdout
