"""Cleanup deletes exactly what scale tests created, also after crashes and with concurrent tests."""

from __future__ import annotations

import json
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.cli.core.parsing import parse
from coder.cli.declarations.scaletest.create_workspaces import CREATE_WORKSPACES
from coder.cli.scaletest import create_workspaces
from coder.cli.scaletest.create_workspaces import _post_recorded
from coder.cli.scaletest.ledger import FILE, UNANSWERED_FOR, Ledger, LedgerEntry, new_names
from coder.cli.scaletest.runs import MAX_JOBS
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.workspaces import build_answer, without_daemon, workspace_world
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply
from tests.unit.cli.scaletest.test_scaletest import names_of, scaletest

MAKE = "create-workspaces -t full --no-wait-for-agents"


async def test_cleanup_leaves_kept_resources(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        before = await names_of(world)
        await scaletest(world, tmp_path, f"{MAKE} --no-cleanup")
        kept = await names_of(world)
        await scaletest(world, tmp_path, MAKE)
        assert await names_of(world) == kept != before
        assert "2 removed" in (await scaletest(world, tmp_path, "cleanup")).stderr
        assert await names_of(world) == before
    assert (tmp_path / FILE).read_text() == ""


async def test_failed_delete_is_retried(tmp_path: Path) -> None:
    broken = [True]

    def build(job: Any) -> Any:
        if broken[0] and job.workspace_build.metadata.workspace_transition == pb.DESTROY:
            return {"error": "the cloud said no"}
        return build_answer(job)

    async with workspace_world() as (world, answers):
        before = await names_of(world)
        answers.build = build
        output = await scaletest(world, tmp_path, f"{MAKE} --use-host-login", code=1)
        assert "its delete build has failed: the cloud said no" in output.stderr and await names_of(world) != before
        broken[0] = False
        assert "1 removed, 0 could not be" in (await scaletest(world, tmp_path, "cleanup")).stderr
        assert await names_of(world) == before


async def test_waits_for_running_build(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        await without_daemon(world)
        words = f"{MAKE} --use-host-login --job-timeout 1s --cleanup-job-timeout 1s"
        output = await scaletest(world, tmp_path, words, code=1)
        assert "already active" not in output.stderr and "it timed out" in output.stderr
        assert len(Ledger(tmp_path, world.url).of("workspace")) == 1


@pytest.mark.parametrize("kind", ["workspace", "user"])
@pytest.mark.parametrize("sees", [True, False, None])
@pytest.mark.parametrize(
    ("owner", "by", "ago", "answered", "message"),
    [
        ("owner", "admin", 0, False, "may still be pending"),
        ("owner", "admin", UNANSWERED_FOR, False, ""),
        ("owner", "admin", 0, True, ""),
        ("owner", "root", 0, True, ""),
        ("owner", "", 0, True, ""),
        ("me", "root", 0, True, ""),
        ("admin", "root", 0, True, ""),
        ("me", "admin", 0, True, ""),
    ],
)
async def test_hidden_resource_is_kept_in_ledger(
    kind: str, sees: bool | None, owner: str, by: str, ago: float, answered: bool, message: str, tmp_path: Path
) -> None:
    """`sees`: the server's answer about resources of other users; None without an answer."""
    refused = reply('{"message": "no"}', status="404 No")

    def answer(_method: str, path: str) -> bytes:
        if path.endswith("/authcheck"):
            return refused if sees is None else reply(json.dumps({"workspace": sees, "user": sees}))
        return reply('{"username": "admin"}') if path.endswith("/me") else refused

    with odd_server() as server:
        server.answer = answer
        ledger = Ledger(tmp_path, server.url, lambda: time.time() - ago)
        entry = ledger.record(kind, owner, new_names(1)[0], by)
        if answered:
            ledger.answered(entry)
        result = await cleaned(server.url, tmp_path)
    is_own = owner == "admin" or (owner, by) == ("me", "admin")
    if not sees and not is_own:
        message = f"resources of {owner} are not visible to admin"
    assert (message in result.stderr, result.code) == (True, 1 if message else 0), result.stderr
    assert len(ledger.of(kind)) == bool(message)


async def cleaned(url: str, home: Path, token: str = "", words: str = "") -> Result:
    env = {"CODER_URL": url, "CODER_SESSION_TOKEN": token or "x", "CODER_CONFIG_DIR": str(home)}
    return await run_cli(["exp", "scaletest", "cleanup", *words.split()], home=home, env=env)


async def test_lost_permission_keeps_ledger(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        _, token = await world.member("before", roles=["owner"])
        world.token, admin = token, world.token
        await scaletest(world, tmp_path, f"{MAKE} --no-cleanup")
        before = await names_of(world)
        world.token = admin
        demoted = await world.put("/api/v2/users/before/roles", {"roles": []})
        assert demoted.status_code == 200, demoted.text
        result = await cleaned(world.url, tmp_path, token)
        assert result.code == 1 and "not visible to before; before created it" in result.stderr, result.stderr
        assert await names_of(world) == before
        assert "2 removed, 0 could not be" in (await cleaned(world.url, tmp_path, admin)).stderr


async def test_resources_of_other_deployments_are_listed(tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply('{"username": "admin"}')
        for url in ("http://other", "http://other", "http://third"):
            Ledger(tmp_path, url).record("workspace", "admin", new_names(1)[0])
        result = await cleaned(server.url, tmp_path)
    assert result.code == 0 and "0 removed" in result.stderr
    assert (
        "2 more were created at http://other:" in result.stderr
        and "1 more were created at http://third" in result.stderr
    )


# ---- ends of a test


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--output json:/nowhere/x", "--output json:/nowhere/x cannot be written"),
        ("--output text,json:{tmp}", "cannot be written: Is a directory"),
        ("--cleanup-concurrency 0", "--cleanup-concurrency 0 is not from 1 to 200"),
        ("--cleanup-concurrency 500", "--cleanup-concurrency 500 is not from 1 to 200"),
        ("--concurrency 0", "--concurrency 0 is not from 1 to 200"),
        ("--count 2001", "--count must be from 1 to 2000"),
        ("--count 0", "--count must be from 1 to 2000"),
    ],
)
async def test_impossible_options_are_rejected_first(words: str, message: str, tmp_path: Path) -> None:
    with odd_server() as server:
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "CODER_CONFIG_DIR": str(tmp_path)}
        words_given = ["exp", "scaletest", *MAKE.split(), *words.format(tmp=tmp_path).split()]
        result = await run_cli(words_given, home=tmp_path, env=env)
    assert result.code == 1 and message in result.stderr and not server.asked


async def test_cleanup_rejects_concurrency(tmp_path: Path) -> None:
    result = await cleaned("http://127.0.0.1:9", tmp_path, words="--cleanup-concurrency 0")
    assert result.code == 1 and "--cleanup-concurrency 0 is not from 1" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
async def test_unwritable_report_still_cleans_up(tmp_path: Path) -> None:
    async with workspace_world() as (world, _):
        before = await names_of(world)
        output = await scaletest(world, tmp_path, f"{MAKE} --output json:/dev/full,text", code=1)
        assert "2 removed" in output.stderr and "/dev/full" in output.stderr
        assert "1 runs, 0 failed" in output.stdout, "the other place has it"
        assert await names_of(world) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("is_kept", [True, False])
async def test_any_end_of_runs_cleans_up(
    error: type[BaseException], is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = list[Any]()

    async def end(*_: Any, **__: Any) -> Any:
        raise error

    async def remove(*_: Any, names: Any) -> int:
        removed.append(names)
        raise NetError("unreachable", "it is away")

    monkeypatch.setattr(create_workspaces, "run_all", end)
    monkeypatch.setattr(create_workspaces, "remove_all", remove)
    monkeypatch.setattr(create_workspaces, "_template", lambda *_: trio.sleep(0))
    monkeypatch.setattr(create_workspaces, "username", lambda *_: trio.sleep(0))
    words = ["--template", "full", "--count", "3", *(["--no-cleanup"] if is_kept else [])]
    invocation = parse(CREATE_WORKSPACES, words, {"CODER_CONFIG_DIR": str(tmp_path)})
    async with HttpClient(DialPolicy("http://127.0.0.1:9")) as http:
        with pytest.raises(error):
            await create_workspaces._test(invocation, http)
    assert [len(names) for names in removed] == ([] if is_kept else [3])


@pytest.mark.parametrize(
    ("answer", "states"),
    [
        (reply("{}", status="201 Created"), ["made"]),
        (reply('{"message": "no"}', status="400 Bad Request"), []),
        (reply("<html>", status="404 Not Found", kind="text/html"), ["intended"]),
        (reply('{"message": "no"}', status="500 Internal Server Error"), ["intended"]),
        (b"", ["intended"]),
    ],
)
async def test_ledger_records_answers(answer: bytes, states: list[str], tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: answer
        ledger = Ledger(tmp_path, server.url)
        entry = ledger.record("user", "a", new_names(1)[0])
        async with HttpClient(DialPolicy(server.url)) as http:
            with nullcontext() if states == ["made"] else pytest.raises((HttpError, NetError)):
                await _post_recorded(http, ledger, entry, "/api/v2/users", {})
    assert [item.state for item in ledger.of("user")] == states


async def test_cleanup_of_several_tests(tmp_path: Path) -> None:
    with odd_server() as server:
        server.answer = lambda _method, _path: reply('{"username": "admin"}')
        names = [f"scaletest-00000000-{number}" for number in range(MAX_JOBS + 1)]
        lines = [{"url": server.url, "kind": "user", "owner": name, "name": name} for name in names]
        (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
        env = {"CODER_URL": server.url, "CODER_SESSION_TOKEN": "x", "CODER_CONFIG_DIR": str(tmp_path)}
        words = ["exp", "scaletest", "cleanup", "--cleanup-timeout", "0s"]
        result = await run_cli(words, home=tmp_path, env=env)
    assert f"{MAX_JOBS + 1} could not be" in result.stderr


def test_ledger_ignores_foreign_lines(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "http://a/", lambda: 7.0)
    (name,) = new_names(1)
    ledger.record("workspace", "me", name)
    rest = '{"url": "http://a", "kind": "workspace", "owner": "me", "name": "production"}\n{"cut\n[]\n{"name": 1}\n'
    with (tmp_path / FILE).open("a") as file:
        file.write(rest)
    assert ledger.of("workspace") == [LedgerEntry("http://a", "workspace", "me", name, at=7.0)]
    assert ledger.of("workspace", ["other"]) == []
    ledger.forget(ledger.of("workspace")[0])
    assert ledger.of("workspace") == []


@pytest.mark.parametrize("half", ['{"url": "http://a", "ki', '{"url": "http://a"}', "\n", ""])
def test_cut_line_loses_no_other(half: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(half)
    ledger = Ledger(tmp_path, "http://a")
    names = new_names(2)
    for name in names:
        ledger.record("user", name, name)
    assert [item.name for item in ledger.of("user")] == names


def test_old_version_lines_are_old(tmp_path: Path) -> None:
    (name,) = new_names(1)
    (tmp_path / FILE).write_text(json.dumps({"url": "http://a", "kind": "user", "owner": name, "name": name}) + "\n")
    ledger = Ledger(tmp_path, "http://a")
    (entry,) = ledger.of("user")
    assert not ledger.may_be_pending(entry) and entry.by == ""


def test_concurrent_writes_are_kept(tmp_path: Path) -> None:
    deleted, stay = new_names(100), new_names(100)
    for name in deleted:
        Ledger(tmp_path, "http://a").record("user", name, name)

    def forget() -> None:
        ledger = Ledger(tmp_path, "http://a")
        for entry in ledger.of("user", deleted):
            ledger.forget(entry)
            ledger.compact()

    def record() -> None:
        for name in stay:
            Ledger(tmp_path, "http://a").record("user", name, name)

    threads = [threading.Thread(target=work) for work in (forget, record)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [item.name for item in Ledger(tmp_path, "http://a").of("user")] == stay
