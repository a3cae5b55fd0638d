"""Output of docker and podman, and the errors when it is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.agent.devcontainers import commands, engine
from coder.agent.devcontainers.commands import CommandError
from coder.agent.devcontainers.engine import Port, find_engine, list_containers, read_containers_untrusted
from coder.api.agents.agent_containers import WorkspaceAgentContainer
from coder.api.base import codec
from tests.kit.agents.container_engine import FakeEngine

DOCKER: dict[str, Any] = {
    "Id": "a" * 64,
    "Created": "2026-01-02T03:04:05.123456789Z",
    "Name": "/web",
    "Config": {"Image": "debian:12", "Labels": {"devcontainer.local_folder": "/work/web"}},
    "State": {"Status": "running", "Running": True, "Error": ""},
    "NetworkSettings": {
        "Ports": {
            "80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}, {"HostIp": "::", "HostPort": "8080"}],
            "53/udp": None,
        }
    },
    "Mounts": [{"Type": "bind", "Source": "/work/web", "Destination": "/workspaces/web"}],
}
PODMAN = {
    "Id": "b" * 64,
    "Created": "2026-01-02T03:04:05.1+00:00",
    "Name": "db",
    "ImageName": "docker.io/library/postgres:17",
    "Config": {"Labels": None},
    "State": {"Status": "exited", "Running": False},
    "NetworkSettings": {},
}


def test_both_engines_are_parsed() -> None:
    web, db = read_containers_untrusted(json.dumps([DOCKER, PODMAN]).encode())
    assert (web.name, web.image, web.running, web.status) == ("web", "debian:12", True, "running")
    assert web.ports == (Port(53, "udp"), Port(80, "tcp", "0.0.0.0", 8080)), "one of two families is enough"
    assert web.volumes == {"/work/web": "/workspaces/web"}
    assert (db.name, db.image, db.running, db.status) == ("db", "docker.io/library/postgres:17", False, "exited")
    for row in (web, db):
        shown = codec.decode(json.dumps(row.to_api()).encode(), WorkspaceAgentContainer)
        assert shown.id == row.id, "the API's shape"


@pytest.mark.parametrize(
    "answer", [b"", b"{}]", b"[1]", b'[{"Id": 1}]', b'[{"Id": "x", "NetworkSettings": 7}]', b"[" * 9999]
)
def test_unparsable_output_is_reported(answer: bytes) -> None:
    with pytest.raises(CommandError, match="could not be parsed"):
        read_containers_untrusted(answer)


async def test_missing_engine_is_reported() -> None:
    assert await find_engine({"PATH": "/nowhere"}) is None
    listing = await list_containers(None, {})
    assert listing.containers == ()
    assert listing.warnings == (
        "No containers can be listed: neither docker nor podman is installed in this workspace.",
    )


@pytest.mark.parametrize("name", ["docker", "podman"])
async def test_either_engine_is_used(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeEngine(tmp_path, monkeypatch, name)
    monkeypatch.setattr(engine, "ENGINES", (name,))  # regardless of this machine's engines
    result = await find_engine(os.environ)
    assert result is not None and result.endswith(f"/{name}")
    assert (await list_containers(result, os.environ)).containers == ()
    place = fake.containers / DOCKER["Id"]
    place.mkdir()
    (place / "inspect.json").write_text(json.dumps(DOCKER))
    assert [row.name for row in (await list_containers(result, os.environ)).containers] == ["web"]
    plain = DOCKER | {"Id": "c" * 64, "Name": "/plain", "Config": {"Labels": {}}}
    place = fake.containers / plain["Id"]
    place.mkdir()
    (place / "inspect.json").write_text(json.dumps(plain))
    assert {row.name for row in (await list_containers(result, os.environ)).containers} == {"web", "plain"}
    only = await list_containers(result, os.environ, only_dev=True)
    assert [row.name for row in only.containers] == ["web"], "the background poll lists it"
    fake.break_down()
    listing = await list_containers(result, os.environ)
    assert listing.warnings == ("Listing containers failed: Cannot connect to the Docker daemon",)


def _add(fake: FakeEngine, number: int, *, dev: bool) -> str:
    """Add the newest container."""
    labels = {"devcontainer.local_folder": f"/work/{number}"} if dev else {}
    row = DOCKER | {"Id": f"{number:064}", "Config": {"Labels": labels}}
    place = fake.containers / row["Id"]
    place.mkdir()
    (place / "inspect.json").write_text(json.dumps(row))
    os.utime(place, (number, number))
    return str(row["Id"])


async def test_dev_containers_are_always_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_CONTAINERS", 3)
    fake = FakeEngine(tmp_path, monkeypatch)
    result = await find_engine(os.environ)
    old = [_add(fake, number, dev=True) for number in (1, 2)]
    plain = [_add(fake, number, dev=False) for number in range(3, 8)]
    listing = await list_containers(result, os.environ)
    assert [row.id for row in listing.containers] == [*plain[:1:-1], *old[::-1]]
    assert (listing.complete, listing.warnings) == (
        True,
        ("Only the newest 3 of 7 containers and the dev containers are shown.",),
    )
    more = [_add(fake, number, dev=True) for number in (8, 9)]
    wanted = [*more[::-1], old[1]]
    for only_dev in (False, True):
        listing = await list_containers(result, os.environ, only_dev=only_dev)
        assert [row.id for row in listing.containers if row.labels] == wanted
        assert not listing.complete, "a missing container may still run"
        assert listing.warnings[-1] == "Only the newest 3 of 4 dev containers are managed."


BREAKS = """#!/bin/sh
# Ends between two queries, with the output of docker: an empty list and an error.
if [ "$1" = ps ]; then [ -e {gone} ] || echo {ident}; exit; fi
{then}
echo "[]"; echo "Error" >&2; exit 1
"""


@pytest.mark.parametrize("is_gone", [False, True])
async def test_engine_failure_removes_nothing(is_gone: bool, tmp_path: Path) -> None:
    gone, program = tmp_path / "gone", tmp_path / "docker"
    program.write_text(BREAKS.format(gone=gone, ident="a" * 64, then=f"touch {gone}" if is_gone else ""))
    program.chmod(0o755)
    listing = await list_containers(str(program), os.environ)
    assert (listing.containers, listing.complete) == ((), is_gone)
    assert listing.warnings == (() if is_gone else ("The engine does not describe 1 of its containers.",))


BOUNDS = {
    "exec sleep 60": "did not finish within",
    "cat /dev/zero": "printed more than 1000 bytes",
    "echo ok; exec >&- 2>&-; sleep 60": "did not finish within",
}


@pytest.mark.parametrize("script", BOUNDS)
async def test_program_limits_are_enforced(script: str) -> None:
    with pytest.raises(CommandError, match=BOUNDS[script]):
        # A silent program uses up its time; a verbose one must be read before its deadline, on a busy machine, too.
        seconds = 60 if "zero" in script else 0.3
        await commands.run_command(["/bin/sh", "-c", script], os.environ, seconds=seconds, max_output=1000)


async def test_program_reads_file_input(tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"x" * (3 << 20))
    result = await commands.run_command(
        ["/bin/sh", "-c", "wc -c; echo why >&2"], os.environ, seconds=60, max_output=99, input_source=path
    )
    assert (result.status, result.output.strip(), result.stderr_tail) == (0, b"3145728", "why")
    with pytest.raises(CommandError, match="Trying failed: why"):
        (await commands.run_command(["/bin/sh", "-c", "echo why >&2; exit 3"], {}, seconds=60, max_output=9)).require(
            "Trying"
        )
    with pytest.raises(CommandError, match="none cannot be started: No such file"):
        await commands.run_command(["/none"], {}, seconds=60, max_output=9)


@pytest.mark.parametrize("arguments", [["/bin/a\0b"], ["/bin/true", "\ud800"]])
async def test_invalid_arguments_are_rejected(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match="cannot be started"):
        await commands.run_command(arguments, os.environ, seconds=60, max_output=9)


async def test_missing_input_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        await commands.run_command(["/bin/cat"], os.environ, seconds=60, max_output=9, input_source=tmp_path / "none")


def test_unsendable_texts_are_dropped() -> None:
    result = json.dumps({"a": "x\0", "\ud800": 1, "b": ["\udcff", "ü"]}).encode()
    assert commands.read_json_untrusted(result) == {"b": ["ü"]}


async def test_silent_input_file_times_out(tmp_path: Path) -> None:
    """A thread read the file, and closing it waited for the thread: on the event loop, for as long as the disk was
    silent."""
    path = tmp_path / "given"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    try:
        # On a busy machine the thread that opens it may be late, too.
        with pytest.raises(CommandError, match=r"(did not finish|could not be opened) within"):
            await commands.run_command(["/bin/cat"], os.environ, seconds=0.3, max_output=9, input_source=path)
    finally:
        os.close(writer)


async def test_late_input_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "given"
    os.mkfifo(path)
    with pytest.raises(CommandError, match="could not be opened within"):
        await commands.run_command(["/bin/cat"], os.environ, seconds=0.3, max_output=9, input_source=path)
    with trio.fail_after(60):
        writer = await trio.to_thread.run_sync(os.open, path, os.O_WRONLY)
        try:
            with pytest.raises(BrokenPipeError):
                while True:
                    os.write(writer, b"x")
                    await trio.sleep(0.01)
        finally:
            os.close(writer)
