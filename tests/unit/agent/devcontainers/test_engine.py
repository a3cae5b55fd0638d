"""What docker and podman say of containers, and what is said when they say nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coder.agent.devcontainers import commands, engine
from coder.agent.devcontainers.commands import CommandError
from coder.agent.devcontainers.engine import Port, find_engine, list_containers, read_containers_untrusted
from coder.api.agents.agent_containers import WorkspaceAgentContainer
from coder.api.base import codec
from tests.kit.container_engine import FakeEngine

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


def test_both_engines_are_understood() -> None:
    web, db = read_containers_untrusted(json.dumps([DOCKER, PODMAN]).encode())
    assert (web.name, web.image, web.running, web.status) == ("web", "debian:12", True, "running")
    assert web.ports == (Port(53, "udp"), Port(80, "tcp", "0.0.0.0", 8080)), "one of two families is enough"
    assert web.volumes == {"/work/web": "/workspaces/web"}
    assert (db.name, db.image, db.running, db.status) == ("db", "docker.io/library/postgres:17", False, "exited")
    for row in (web, db):
        shown = codec.decode(json.dumps(row.shown()).encode(), WorkspaceAgentContainer)
        assert shown.id == row.id, "the API's shape"


@pytest.mark.parametrize(
    "answer", [b"", b"{}]", b"[1]", b'[{"Id": 1}]', b'[{"Id": "x", "NetworkSettings": 7}]', b"[" * 9999]
)
def test_an_answer_that_is_none_is_one_sentence(answer: bytes) -> None:
    with pytest.raises(CommandError, match="could not be read"):
        read_containers_untrusted(answer)


async def test_without_an_engine_it_says_so() -> None:
    assert await find_engine({"PATH": "/nowhere"}) is None
    listing = await list_containers(None, {})
    assert listing.containers == ()
    assert listing.warnings == (
        "No containers can be listed: neither docker nor podman is installed in this workspace.",
    )


@pytest.mark.parametrize("name", ["docker", "podman"])
async def test_either_engine_is_asked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeEngine(tmp_path, monkeypatch, name)
    monkeypatch.setattr(engine, "ENGINES", (name,))  # whatever this machine has
    found = await find_engine(os.environ)
    assert found is not None and found.endswith(f"/{name}")
    assert (await list_containers(found, os.environ)).containers == ()
    place = fake.containers / DOCKER["Id"]
    place.mkdir()
    (place / "inspect.json").write_text(json.dumps(DOCKER))
    assert [row.name for row in (await list_containers(found, os.environ)).containers] == ["web"]
    plain = DOCKER | {"Id": "c" * 64, "Name": "/plain", "Config": {"Labels": {}}}
    place = fake.containers / plain["Id"]
    place.mkdir()
    (place / "inspect.json").write_text(json.dumps(plain))
    assert {row.name for row in (await list_containers(found, os.environ)).containers} == {"web", "plain"}
    only = await list_containers(found, os.environ, only_dev=True)
    assert [row.name for row in only.containers] == ["web"], "looked for in the background"
    fake.break_down()
    listing = await list_containers(found, os.environ)
    assert listing.warnings == ("Listing containers failed: Cannot connect to the Docker daemon",)


BOUNDS = {
    "exec sleep 60": "gave no answer within",
    "cat /dev/zero": "said more than 1000 bytes",
    "echo ok; exec >&- 2>&-; sleep 60": "gave no answer within",
}


@pytest.mark.parametrize("script", BOUNDS)
async def test_programs_have_so_much_time_and_so_many_words(script: str) -> None:
    with pytest.raises(CommandError, match=BOUNDS[script]):
        await commands.ask(["/bin/sh", "-c", script], os.environ, seconds=0.3, max_output=1000)


async def test_a_program_gets_a_file_and_is_heard_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"x" * (3 << 20))
    said = await commands.ask(
        ["/bin/sh", "-c", "wc -c; echo why >&2"], os.environ, seconds=60, max_output=99, given=path
    )
    assert (said.status, said.output.strip(), said.complaint) == (0, b"3145728", "why")
    with pytest.raises(CommandError, match="Trying failed: why"):
        (await commands.ask(["/bin/sh", "-c", "echo why >&2; exit 3"], {}, seconds=60, max_output=9)).require("Trying")
    with pytest.raises(CommandError, match="none cannot be started: No such file"):
        await commands.ask(["/none"], {}, seconds=60, max_output=9)


@pytest.mark.parametrize("words", [["/bin/a\0b"], ["/bin/true", "\ud800"]])
async def test_words_no_command_line_can_have_are_refused_as_such(words: list[str]) -> None:
    with pytest.raises(CommandError, match="cannot be started"):
        await commands.ask(words, os.environ, seconds=60, max_output=9)


async def test_a_file_that_cannot_be_given_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        await commands.ask(["/bin/cat"], os.environ, seconds=60, max_output=9, given=tmp_path / "none")


def test_what_is_no_text_for_others_is_as_if_it_were_not_there() -> None:
    said = json.dumps({"a": "x\0", "\ud800": 1, "b": ["\udcff", "ü"]}).encode()
    assert commands.read_json_untrusted(said) == {"b": ["ü"]}
