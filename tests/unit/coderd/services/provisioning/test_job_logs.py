"""Logs of jobs: stored, read, and followed to the end."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from coder.base.secret import Secret
from coder.domain.provisioning.jobs import MAX_LOG_BYTES, OVERFLOW_LINE
from coder.net.dial import DialPolicy
from coder.net.errors import HttpError
from coder.net.websocket import WebSocketStream, connect_websocket
from coder.rpc.proto import provisioner_pb2
from tests.kit.api.api_description import check_list
from tests.kit.provisioners.scripted_provisioner import connected_daemon, line, new_template, new_version
from tests.kit.server.server_in_process import World, running_coderd


@contextlib.asynccontextmanager
async def follow(world: World, path: str, token: str | None = None) -> AsyncIterator[WebSocketStream]:
    policy = DialPolicy(world.url, token=Secret(world.token if token is None else token))
    async with await connect_websocket(policy, path) as websocket:
        yield websocket


async def read_all(websocket: WebSocketStream) -> list[dict[str, Any]]:
    """Return all messages until the server closes."""
    messages: list[Any] = []
    while True:
        message = await websocket.receive_message()
        if message is None:
            return messages
        assert isinstance(message, str), "one text message per line"
        messages.append(json.loads(message))


async def test_follow_stored_then_new_lines() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        path = f"/api/v2/templateversions/{version['id']}/logs"
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            await daemon.update(job, logs=[line("Setting up", ""), line("Planning", "one")])
            async with follow(world, f"{path}?follow&after=-1") as websocket:
                assert json.loads(await websocket.receive_message() or "")["stage"] == "Setting up"
                assert json.loads(await websocket.receive_message() or "")["output"] == "one"
                await daemon.update(job, logs=[line("Planning", "two", provisioner_pb2.WARN)])
                with trio.fail_after(60):
                    third = json.loads(await websocket.receive_message() or "")
                assert (third["output"], third["log_level"], third["log_source"]) == ("two", "warn", "provisioner")
                await daemon.complete_import(job)
                with trio.fail_after(60):
                    assert await read_all(websocket) == []
                assert (websocket.close_code, websocket.close_reason) == (1000, "done")
        check_list("ProvisionerJobLog", (await world.get(path)).json())


async def test_follow_ended_job_closes() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        path = f"/api/v2/templateversions/{version['id']}/logs"
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            await daemon.update(job, logs=[line("Planning", text) for text in ("one", "two")])
            await daemon.fail(job, "boom")
        async with follow(world, f"{path}?follow=true") as websocket:
            messages = await read_all(websocket)
        assert [entry["output"] for entry in messages] == ["one", "two"]
        async with follow(world, f"{path}?follow&before=1&after={messages[0]['id']}") as websocket:
            assert [entry["output"] for entry in await read_all(websocket)] == ["two"]
        async with follow(world, f"{path}?follow&after=9999999") as websocket:
            assert await read_all(websocket) == []
            assert websocket.close_code == 1000


async def test_logs_as_text_and_ranges() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        path = f"/api/v2/templateversions/{version['id']}/logs"
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            await daemon.update(job, logs=[line("Planning", "one\x00"), line("Planning", "two")])
            await daemon.complete_import(job)
        first, second = (await world.get(path)).json()
        assert first["output"] == "one"
        assert (await world.get(f"{path}?after={first['id']}")).json() == [second]
        text = await world.get(f"{path}?format=text")
        assert text.headers["content-type"].startswith("text/plain")
        assert text.text.splitlines()[1].endswith(" [info] [provisioner|Planning] two")
        assert (await world.get(f"{path}?format=xml")).status_code == 400
        assert (await world.get(f"{path}?after=abc")).status_code == 400
        assert (await world.get(f"{path}?follow")).status_code == 426


async def test_full_log_ends_with_warning() -> None:
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            for _ in range(3):
                await daemon.update(job, logs=[line("Planning", "x" * (MAX_LOG_BYTES // 2))])
            await daemon.complete_import(job)
        logs = (await world.get(f"/api/v2/templateversions/{version['id']}/logs")).json()
        assert [len(entry["output"]) for entry in logs[:2]] == [MAX_LOG_BYTES // 2] * 2
        assert [(entry["log_level"], entry["output"]) for entry in logs[2:]] == [("warn", OVERFLOW_LINE)]
        current = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()
        assert current["job"]["logs_overflowed"] is True


async def test_follow_requires_read_permission() -> None:
    async with running_coderd(first_user=True) as world:
        await new_template(world, "hidden", disable_everyone_group_access=True)
        version = (await world.get("/api/v2/organizations/default/templates/hidden")).json()["active_version_id"]
        _, member = await world.member("alice")
        path = f"/api/v2/templateversions/{version}/logs?follow"
        for token, status in ((member, 404), ("", 401)):
            with pytest.raises(HttpError) as caught:
                async with follow(world, path, token):
                    pass
            assert caught.value.status == status
