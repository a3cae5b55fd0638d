"""Helpers of git inside a workspace: ssh with the owner's key, and answers to prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from coder.net.blocking import BlockingClient, HttpAnswer
from coder.net.errors import HttpError
from tests.kit.programs.command_line import Result, run_cli

PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n"
ENV = {"CODER_AGENT_URL": "http://127.0.0.1:9", "CODER_AGENT_TOKEN": "22222222-2222-4333-8444-555555555555"}


async def run(words: list[str], home: Path, answers: dict[str, Any], path: str = "") -> tuple[Result, list[str]]:
    """Run a command whose requests are answered by path; return its requests."""
    requests: list[str] = []

    def request(_: BlockingClient, __: str, target: str, **___: Any) -> HttpAnswer:
        requests.append(target)
        answer = answers.get(target)
        if answer is None:
            raise HttpError(404, "none")
        import msgspec

        return HttpAnswer(200, {}, msgspec.json.encode(answer))

    with mock.patch.object(BlockingClient, "request", request):
        done = await run_cli(words, home=home, env={**ENV, **({"PATH": path} if path else {})})
    return done, requests


@pytest.mark.parametrize("code", [0, 255])
async def test_ssh_uses_owner_and_workspace_keys(tmp_path: Path, code: int) -> None:
    tools, seen = tmp_path / "tools", tmp_path / "seen"
    tools.mkdir()
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("own")
    ssh = tools / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" > {seen}\nstat -c %a "$2" >> {seen}\ncat "$2" >> {seen}\nexit {code}\n')
    ssh.chmod(0o755)
    answers = {"/api/v2/workspaceagents/me/gitsshkey": {"public_key": "ssh-ed25519 AAAA\n", "private_key": PRIVATE}}
    words = ["gitssh", "--", "-o", "SendEnv=GIT_PROTOCOL", "git@example.com", "git-upload-pack '/x'"]
    done, _ = await run(words, tmp_path, answers, f"{tools}:/usr/bin:/bin")
    assert done.code == code, done.stderr
    line, mode, *key = seen.read_text().splitlines()
    assert line.endswith(f"-i {tmp_path}/.ssh/id_rsa -o SendEnv=GIT_PROTOCOL git@example.com git-upload-pack '/x'")
    assert (mode, "\n".join(key) + "\n") == ("600", PRIVATE)
    assert not Path(line.split()[1]).exists(), "the key is deleted after the command"
    assert ("ssh-ed25519 AAAA" in done.stderr) == (code == 255)


async def test_questions_of_git(tmp_path: Path) -> None:
    path = "/api/v2/workspaceagents/me/external-auth?match=https%3A%2F%2Fgithub.com"
    token = {"access_token": "tok", "url": "", "username": "oauth2", "password": "tok"}
    done, requests = await run(["Username for 'https://github.com': "], tmp_path, {path: token})
    assert (done.code, done.stdout, requests) == (0, "oauth2\n", [path])
    done, _ = await run(["Password for 'https://oauth2@github.com': "], tmp_path, {path: token})
    assert (done.code, done.stdout) == (0, "tok\n")
    waits = {path: {"access_token": "", "url": "https://coder/external-auth/github"}, f"{path}&listen": token}
    done, requests = await run(["Password for 'https://oauth2@github.com': "], tmp_path, waits)
    assert (done.stdout, requests) == ("tok\n", [path, f"{path}&listen"])
    assert "https://coder/external-auth/github" in done.stderr
    bare = {"access_token": "tok", "url": "", "username": "", "password": ""}
    done, _ = await run(["Username for 'https://github.com': "], tmp_path, {path: bare})
    assert done.stdout == "tok\n"
    done, _ = await run(["Username for 'https://elsewhere.org/x': "], tmp_path, {})
    assert done.code == 1
    assert "no token provider for https://elsewhere.org/x" in done.stderr
